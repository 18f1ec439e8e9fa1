// A teacher's latents on disk: which piece of them a clip gets, and what is said of files that
// don't fit.
#include "trainer/workloads/taehv/teacher_latents.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/workloads/taehv/clip_samples.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

constexpr VideoShape kVideo{.frames = 18, .height = 32, .width = 48};
constexpr LatentGrid kGrid{.channels = 2, .frames = 4, .pixels = 8};
const Shape kShape{5, 2, 4, 6};

/// Says where it is: time, channel, row and column.
float value_at(std::int64_t t, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<float>(1000 * t + 100 * c + 10 * y + x);
}

std::vector<float> values_of(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t t = 0; t < shape[0]; ++t)
    for (std::int64_t c = 0; c < shape[1]; ++c)
      for (std::int64_t y = 0; y < shape[2]; ++y)
        for (std::int64_t x = 0; x < shape[3]; ++x) values.push_back(value_at(t, c, y, x));
  return values;
}

/// With another tensor before it, so that it does not begin where the data does.
fs::path write(const TemporaryFolder& folder, const Shape& shape, const std::string& dtype = "F32",
               const std::string& name = "latents") {
  const auto path = folder.path() / "one.mp4.safetensors";
  const auto values = values_of(shape);
  std::vector<std::byte> bytes(values.size() * element_bytes(dtype));
  if (dtype == "F32") std::memcpy(bytes.data(), values.data(), bytes.size());
  const std::vector<float> other{7, 7, 7};
  const std::vector<TensorBytes> tensors{
      {.name = "a", .shape = {3}, .bytes = std::as_bytes(std::span(other))},
      {.name = name, .shape = shape, .bytes = bytes, .dtype = dtype}};
  EXPECT_TRUE(write_safetensors(path, tensors, {}));
  return path;
}

TEST(TeacherLatents, a_piece_is_cut_where_it_lies) {
  const TemporaryFolder folder;
  const auto latents = TeacherLatents::open(write(folder, kShape), kVideo, kGrid);
  ASSERT_TRUE(latents) << describe(latents.error());
  std::vector<float> piece(2 * 2 * 3 * 3);
  ASSERT_TRUE(latents->read({.first = 2, .count = 2, .top = 1, .left = 3, .side = 3}, piece));
  std::size_t at = 0;
  for (std::int64_t t = 2; t < 4; ++t)
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t y = 1; y < 4; ++y)
        for (std::int64_t x = 3; x < 6; ++x) EXPECT_EQ(piece[at++], value_at(t, c, y, x));
}

TEST(TeacherLatents, half_precision_is_read) {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> halves{0x3C00, 0xC000, 0x3800, 0x0000};  // 1, -2, 0.5, 0
  const std::vector<TensorBytes> tensors{{.name = "latents",
                                          .shape = {1, 1, 2, 2},
                                          .bytes = std::as_bytes(std::span(halves)),
                                          .dtype = "F16"}};
  const auto path = folder.path() / "half.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors, {}));
  const auto latents = TeacherLatents::open(path, {.frames = 4, .height = 16, .width = 16},
                                            {.channels = 1, .frames = 4, .pixels = 8});
  ASSERT_TRUE(latents) << describe(latents.error());
  std::vector<float> all(4);
  ASSERT_TRUE(latents->read({.count = 1, .side = 2}, all));
  EXPECT_EQ(all, (std::vector<float>{1, -2, 0.5, 0}));
}

TEST(TeacherLatents, the_last_incomplete_latent_may_be_there_or_not) {
  const TemporaryFolder folder;
  for (const std::int64_t count : {4, 5})
    EXPECT_TRUE(TeacherLatents::open(write(folder, {count, 2, 4, 6}), kVideo, kGrid)) << count;
}

TEST(TeacherLatents, what_does_not_fit_is_named) {
  const TemporaryFolder folder;
  const auto cause = [&](const fs::path& path) {
    const auto latents = TeacherLatents::open(path, kVideo, kGrid);
    return latents ? "" : describe(latents.error()).substr(folder.path().string().size() + 1);
  };
  EXPECT_EQ(cause(folder.path() / "gone"), "gone: is not there; it would be the teacher's latents");
  EXPECT_EQ(cause(write(folder, kShape, "F32", "z")), "one.mp4.safetensors: has no tensor latents");
  EXPECT_EQ(cause(write(folder, kShape, "F64")),
            "one.mp4.safetensors: tensor latents is of type F64; F32, F16 and BF16 can be read");
  for (const auto& shape :
       {Shape{5, 16, 4, 6}, Shape{6, 2, 4, 6}, Shape{3, 2, 4, 6}, Shape{5, 2, 4, 5}})
    EXPECT_EQ(cause(write(folder, shape)),
              "one.mp4.safetensors: tensor latents is " + shape_text(shape) +
                  "; of its video it is [5, 2, 4, 6] (latents in time, channels, height, width)");
  EXPECT_NE(cause(folder.write("text", "no tensors at all")).find("not a usable safetensors file"),
            std::string::npos);
}

TEST(TeacherLatents, a_file_that_was_cut_since_is_an_error) {
  const TemporaryFolder folder;
  const auto path = write(folder, kShape);
  const auto latents = TeacherLatents::open(path, kVideo, kGrid);
  ASSERT_TRUE(latents);
  fs::resize_file(path, fs::file_size(path) - 100);
  std::vector<float> piece(2 * 4 * 4);
  EXPECT_TRUE(latents->read({.first = 0, .count = 1, .side = 4}, piece));
  const auto cut = latents->read({.first = 4, .count = 1, .side = 4}, piece);
  ASSERT_FALSE(cut);
  EXPECT_NE(describe(cut.error()).find("has been cut since it was opened"), std::string::npos);
}

TEST(TeacherLatents, a_file_has_the_name_of_its_video) {
  const auto name = [](const std::string& video, const std::vector<std::string>& paths) {
    return teacher_file("t", video, paths).string();
  };
  EXPECT_EQ(name("videos/a/b.mp4", {"videos"}), "t/a/b.mp4.safetensors");
  EXPECT_EQ(name("videos/a/b.mp4", {"other", "videos/"}), "t/a/b.mp4.safetensors");
  EXPECT_EQ(name("/v/a/b.mp4", {"/v"}), "t/a/b.mp4.safetensors");
  EXPECT_EQ(name("videos/a/b.mp4", {"videos/a/b.mp4"}), "t/b.mp4.safetensors") << "named itself";
  EXPECT_EQ(name("videos/pictures", {"videos/pictures"}), "t/pictures.safetensors");
  EXPECT_EQ(name("./b.mp4", {"."}), "t/b.mp4.safetensors");
}

class Grey final : public Video {
 public:
  VideoShape shape() const override { return kVideo; }
  Result<void> read(std::span<const std::int64_t>, std::span<std::byte>) const override {
    return {};
  }
};

TEST(TeacherLatents, a_batch_has_those_of_its_clips) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<Video>> videos;
  videos.push_back(std::make_unique<Grey>());
  ClipSamples::Options options{.shape = {.frames = 8,
                                         .side = 16,
                                         .frame_step = kGrid.frames,
                                         .pixel_step = kGrid.pixels,
                                         .may_be_mirrored = false},
                               .weight = 1,
                               .bad = {.of = 1}};
  const auto clip_shape = options.shape;
  options.grid = kGrid;
  options.latents.push_back(TeacherLatents::open(write(folder, kShape), kVideo, kGrid).value());
  const ClipSamples samples(std::move(videos), std::move(options));
  const ClipPlan plan({kVideo}, clip_shape, /*is_drawn=*/true);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<Sample> wanted{{.index = 0, .epoch_key = epoch},
                                     {.index = 1, .epoch_key = epoch}};
    const auto batch = samples.read(wanted);
    ASSERT_TRUE(batch) << describe(batch.error());
    ASSERT_EQ(batch->tensors.size(), 2U);
    const auto& latents = batch->tensors[1];
    EXPECT_EQ(latents.shape, (Shape{2, 2, 2, 2, 2}));
    std::vector<float> floats(32);
    ASSERT_EQ(latents.bytes.size(), floats.size() * sizeof(float));
    std::memcpy(floats.data(), latents.bytes.data(), latents.bytes.size());
    const auto clip = plan.clip(wanted[1]);
    EXPECT_EQ(floats[16], value_at(clip.frames.front() / 4, 0, clip.top / 8, clip.left / 8));
    EXPECT_EQ(floats[31],
              value_at(clip.frames.front() / 4 + 1, 1, clip.top / 8 + 1, clip.left / 8 + 1));
  }
}

}  // namespace
}  // namespace tj::trainer
