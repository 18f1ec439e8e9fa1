#include "trainer/workloads/taehv/clip_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace tj::trainer {
namespace {

const std::vector<VideoShape> kVideos{{.frames = 25, .height = 40, .width = 64},
                                      {.frames = 8, .height = 32, .width = 32},
                                      {.frames = 100, .height = 33, .width = 90}};
constexpr ClipShape kShape{.frames = 8, .side = 32, .stride_max = 5};

TEST(ClipPlan, tiles_the_frames_of_each_video) {
  const ClipPlan plan(kVideos, kShape, /*is_drawn=*/false);
  ASSERT_EQ(plan.count(), 3 + 1 + 12);
  const auto second = plan.clip({.index = 1});
  EXPECT_EQ(second.video, 0U);
  EXPECT_EQ(second.frames.front(), 8);
  EXPECT_EQ(second.frames.back(), 15);
  EXPECT_EQ(second.top, 4);
  EXPECT_EQ(second.left, 16);
  EXPECT_EQ(plan.clip({.index = 3}).video, 1U);
  EXPECT_EQ(plan.clip({.index = 15}).frames.back(), 95);
}

TEST(ClipPlan, draws_what_lies_in_the_video) {
  const ClipPlan plan(kVideos, kShape, /*is_drawn=*/true);
  std::set<std::int64_t> strides, lefts;
  std::set<bool> mirrored;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    for (std::int64_t index = 0; index < plan.count(); ++index) {
      const auto clip = plan.clip({.index = index, .epoch_key = epoch});
      const auto& video = kVideos[clip.video];
      ASSERT_EQ(clip.frames.size(), 8U);
      const auto stride = clip.frames[1] - clip.frames[0];
      for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(clip.frames[i] - clip.frames[i - 1], stride);
      EXPECT_GE(clip.frames.front(), 0);
      EXPECT_LT(clip.frames.back(), video.frames);
      EXPECT_LE(clip.top + kShape.side, video.height);
      EXPECT_LE(clip.left + kShape.side, video.width);
      if (clip.video == 1) {
        EXPECT_EQ(stride, 1);
      }
      strides.insert(stride);
      lefts.insert(clip.left);
      mirrored.insert(clip.is_mirrored);
    }
  }
  EXPECT_EQ(strides, (std::set<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(mirrored.size(), 2U);
  EXPECT_GT(lefts.size(), 40U);
}

TEST(ClipPlan, clips_may_be_drawn_by_steps) {
  const ClipPlan plan(
      kVideos,
      {.frames = 8, .side = 32, .frame_step = 4, .pixel_step = 8, .may_be_mirrored = false},
      /*is_drawn=*/true);
  std::set<std::int64_t> firsts, lefts;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    for (std::int64_t index = 0; index < plan.count(); ++index) {
      const auto clip = plan.clip({.index = index, .epoch_key = epoch});
      EXPECT_EQ(clip.frames.front() % 4, 0);
      EXPECT_EQ(clip.frames.back(), clip.frames.front() + 7) << "a stride of 1";
      EXPECT_LT(clip.frames.back(), kVideos[clip.video].frames);
      EXPECT_EQ(clip.top % 8, 0);
      EXPECT_EQ(clip.left % 8, 0);
      EXPECT_LE(clip.left + 32, kVideos[clip.video].width);
      EXPECT_FALSE(clip.is_mirrored);
      if (clip.video != 0) continue;
      firsts.insert(clip.frames.front());
      lefts.insert(clip.left);
    }
  }
  EXPECT_EQ(firsts, (std::set<std::int64_t>{0, 4, 8, 12, 16})) << "of 25 frames, the last too";
  EXPECT_EQ(lefts, (std::set<std::int64_t>{0, 8, 16, 24, 32}));
}

TEST(ClipPlan, a_clip_of_one_frame_is_any_frame) {
  const ClipPlan plan({{.frames = 4, .height = 32, .width = 32}},
                      {.frames = 1, .side = 32, .stride_max = 5}, /*is_drawn=*/true);
  std::set<std::int64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 100; ++epoch)
    seen.insert(plan.clip({.index = 0, .epoch_key = epoch}).frames.front());
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3}));
}

TEST(ClipPlan, a_sample_is_the_same_clip_each_time) {
  const ClipPlan plan(kVideos, kShape, /*is_drawn=*/true);
  const ClipPlan again(kVideos, kShape, /*is_drawn=*/true);
  for (std::int64_t index = 0; index < plan.count(); ++index) {
    const Sample sample{.index = index, .epoch_key = 77};
    EXPECT_EQ(plan.clip(sample).frames, again.clip(sample).frames);
    EXPECT_EQ(plan.clip(sample, 3).frames, again.clip(sample, 3).frames);
  }
}

/// Every byte of frame n is n; those from `bad_from` on can't be decoded.
class Numbered final : public Video {
 public:
  explicit Numbered(std::int64_t bad_from) : bad_from_(bad_from) {}
  VideoShape shape() const override { return {.frames = 50, .height = 32, .width = 48}; }
  Result<void> read(std::span<const std::int64_t> frames, std::span<std::byte> rgb) const override {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (frames[i] >= bad_from_)
        return Error{.code = Code::invalid, .message = "is damaged", .subject = "one.mp4"};
      const auto place = rgb.subspan(i * shape().frame_bytes(), shape().frame_bytes());
      std::ranges::fill(place, static_cast<std::byte>(frames[i]));
    }
    return {};
  }

 private:
  std::int64_t bad_from_;
};

ClipSamples samples_of(const std::vector<std::int64_t>& bad_from, double bad_share_max) {
  std::vector<std::unique_ptr<Video>> videos;
  for (const auto from : bad_from) videos.push_back(std::make_unique<Numbered>(from));
  return ClipSamples(std::move(videos),
                     {.shape = kShape,
                      .is_drawn = true,
                      .weight = 10,
                      .bad = {.of = bad_from.size(), .share_max = bad_share_max}});
}

TEST(ClipSamples, a_batch_has_clips_of_planes) {
  const auto samples = samples_of({50}, 0);
  const std::vector<Sample> wanted{{.index = 0}, {.index = 5}};
  const auto batch = samples.read(wanted);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->weight, 20);
  const auto& clips = batch->tensors.at(0);
  EXPECT_EQ(clips.shape, (std::vector<std::int64_t>{2, 8, 3, 32, 32}));
  ASSERT_EQ(clips.bytes.size(), 2U * 8 * 3 * 32 * 32);
  const ClipPlan plan({{.frames = 50, .height = 32, .width = 48}}, kShape, true);
  const auto expected = plan.clip(wanted[1]).frames;
  for (std::size_t frame = 0; frame < 8; ++frame)
    EXPECT_EQ(clips.bytes[(8 + frame) * 3 * 32 * 32], static_cast<std::byte>(expected[frame]));
}

TEST(ClipSamples, another_clip_stands_in_for_a_damaged_one) {
  const auto samples = samples_of({50, 0, 50}, 0.5);
  const auto again = samples_of({50, 0, 50}, 0.5);
  for (std::int64_t index = 0; index < samples.sample_count(); ++index) {
    const std::vector<Sample> wanted{{.index = index}};
    const auto batch = samples.read(wanted), other = again.read(wanted);
    ASSERT_TRUE(batch && other);
    EXPECT_EQ(batch->tensors[0].bytes, other->tensors[0].bytes);
  }
}

TEST(ClipSamples, more_damage_than_may_be_ends_it) {
  const auto samples = samples_of({50, 0, 50}, 0.2);
  const std::vector<Sample> wanted{{.index = 8}};
  const auto batch = samples.read(wanted);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, Code::invalid);
  EXPECT_EQ(batch.error().subject, "one.mp4");
  EXPECT_EQ(batch.error().message,
            "is damaged; 1 of 3 videos can't be used, --bad-data-max allows 20% (mend or remove "
            "them, or allow more)");
}

TEST(ClipSamples, where_nothing_can_be_read_it_ends) {
  const auto samples = samples_of({0}, 1);
  const std::vector<Sample> wanted{{.index = 0}};
  EXPECT_FALSE(samples.read(wanted));
}

}  // namespace
}  // namespace tj::trainer
