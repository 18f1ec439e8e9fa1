#include "trainer/workloads/taehv/clip_samples.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "trainer/process/lines.h"
#include "trainer/values/counter_random.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr std::uint64_t kTriesMax = 16;  // clips in place of one that can't be decoded

std::vector<VideoShape> shapes_of(const std::vector<std::unique_ptr<Video>>& videos) {
  std::vector<VideoShape> shapes;
  for (const auto& video : videos) shapes.push_back(video->shape());
  return shapes;
}

/// Numbers that belong to one sample, one after another.
class Dice {
 public:
  Dice(const Sample& sample, std::uint64_t retry)
      : state_(mixed(sample.epoch_key ^ mixed(static_cast<std::uint64_t>(sample.index) + 1)) +
               retry) {}
  /// Below `count`.
  std::int64_t next(std::int64_t count) {
    state_ = mixed(state_ + 1);
    return static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t state_;
};

/// Rows of RGB pixels to planes of one channel each.
void cut_out(std::span<const std::byte> rgb, const VideoShape& shape, const Clip& clip,
             std::int64_t side, std::byte* place) {
  for (std::int64_t channel = 0; channel < kRgbChannels; ++channel) {
    for (std::int64_t row = 0; row < side; ++row) {
      const auto* const pixels =
          rgb.data() + ((clip.top + row) * shape.width + clip.left) * kRgbChannels + channel;
      for (std::int64_t column = 0; column < side; ++column) {
        const auto from = clip.is_mirrored ? side - 1 - column : column;
        *place++ = pixels[from * kRgbChannels];
      }
    }
  }
}

}  // namespace

std::string BadVideos::count_text() const {
  return std::to_string(count) + " of " + std::to_string(of) + " videos";
}

std::string BadVideos::text() const {
  char share[32];
  std::snprintf(share, sizeof share, "%g%%", 100 * share_max);
  return count_text() + " can't be used, --bad-data-max allows " + share;
}

ClipPlan::ClipPlan(const std::vector<VideoShape>& videos, const ClipShape& shape, bool is_drawn)
    : videos_(videos), shape_(shape), is_drawn_(is_drawn) {
  TJ_CHECK(!videos.empty(), "there is a video");
  std::int64_t count = 0;
  for (const auto& video : videos_) ends_.push_back(count += video.frames / shape_.frames);
}

Clip ClipPlan::clip(const Sample& sample, std::uint64_t retry) const {
  Dice dice(sample, retry);
  const auto index = retry == 0 ? sample.index : dice.next(count());
  const auto found = std::ranges::upper_bound(ends_, index);
  const auto video = static_cast<std::size_t>(found - ends_.begin());
  const auto& shape = videos_[video];
  const auto tile = index - (video == 0 ? 0 : ends_[video - 1]);
  Clip clip{.video = video,
            .frames = {},
            .top = (shape.height - shape_.side) / 2,
            .left = (shape.width - shape_.side) / 2};
  std::int64_t first = tile * shape_.frames, stride = 1;
  if (is_drawn_) {
    const auto gaps = std::max<std::int64_t>(1, shape_.frames - 1);
    const auto fitting = (shape.frames - 1) / gaps;
    stride = 1 + dice.next(std::clamp<std::int64_t>(fitting, 1, shape_.stride_max));
    first = dice.next(shape.frames - (shape_.frames - 1) * stride);
    clip.top = dice.next(shape.height - shape_.side + 1);
    clip.left = dice.next(shape.width - shape_.side + 1);
    clip.is_mirrored = dice.next(2) == 1;
  }
  for (std::int64_t frame = 0; frame < shape_.frames; ++frame)
    clip.frames.push_back(first + frame * stride);
  return clip;
}

ClipSamples::ClipSamples(std::vector<std::unique_ptr<Video>> videos, const Options& options)
    : videos_(std::move(videos)),
      options_(options),
      plan_(shapes_of(videos_), options.shape, options.is_drawn) {}

Result<void> ClipSamples::read_clip(const Clip& clip, std::span<std::byte> place) const {
  const auto& video = *videos_[clip.video];
  const auto shape = video.shape();
  std::vector<std::byte> rgb(clip.frames.size() * shape.frame_bytes());
  if (auto read = video.read(clip.frames, rgb); !read) return read;
  const auto frame_bytes =
      static_cast<std::size_t>(kRgbChannels * options_.shape.side * options_.shape.side);
  for (std::size_t i = 0; i < clip.frames.size(); ++i)
    cut_out(std::span(rgb).subspan(i * shape.frame_bytes(), shape.frame_bytes()), shape, clip,
            options_.shape.side, place.data() + i * frame_bytes);
  return {};
}

Result<void> ClipSamples::note_damage(const Clip& clip, const Error& error) const {
  const std::scoped_lock lock(mutex_);
  if (!damaged_.insert(clip.video).second) return {};
  auto bad = options_.bad;
  bad.count += damaged_.size();
  if (bad.are_too_many())
    return Error{.code = Code::invalid,
                 .message = error.message + "; " + bad.text(),
                 .subject = error.subject};
  say_error("left out, other clips take its place: " + describe(error));
  return {};
}

Result<SampleBatch> ClipSamples::read(std::span<const Sample> samples) const {
  const auto& [frames, side, stride_max] = options_.shape;
  HostTensor clips{
      .type = HostTensor::Type::uint8,
      .shape = {static_cast<std::int64_t>(samples.size()), frames, kRgbChannels, side, side},
      .bytes = {}};
  const auto clip_bytes = static_cast<std::size_t>(frames * kRgbChannels * side * side);
  clips.bytes.resize(samples.size() * clip_bytes);
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const auto place = std::span(clips.bytes).subspan(row * clip_bytes, clip_bytes);
    Result<void> done;
    for (std::uint64_t retry = 0; retry < kTriesMax; ++retry) {
      const auto clip = plan_.clip(samples[row], retry);
      done = read_clip(clip, place);
      if (done) break;
      if (auto noted = note_damage(clip, done.error()); !noted) return noted.error();
    }
    if (!done) return done.error();
  }
  SampleBatch batch{.tensors = {},
                    .weight = static_cast<std::int64_t>(samples.size()) * options_.weight};
  batch.tensors.push_back(std::move(clips));
  return batch;
}

DataMark ClipSamples::mark() const {
  std::uint64_t digest = 0;
  for (const auto& shape : shapes_of(videos_)) {
    for (const auto extent : {shape.frames, shape.height, shape.width})
      digest = mixed(digest ^ static_cast<std::uint64_t>(extent));
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return {.unit = "frames", .count = frame_count(), .digest = text};
}

std::int64_t ClipSamples::frame_count() const {
  std::int64_t frames = 0;
  for (const auto& video : videos_) frames += video->shape().frames;
  return frames;
}

std::string ClipSamples::description() const {
  return grouped(frame_count()) + " frames in " +
         grouped(static_cast<std::int64_t>(videos_.size())) +
         (videos_.size() == 1 ? " video" : " videos");
}

}  // namespace tj::trainer
