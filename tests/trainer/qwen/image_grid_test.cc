#include "trainer/workloads/qwen_vggt/image_grid.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tj::trainer {
namespace {

constexpr PatchRule kRule;

TEST(ImageGrid, sides_become_multiples_of_a_token_within_the_bounds) {
  struct Row {
    PictureSides from, to;  // height, width
  };
  const Row rows[] = {
      {{56, 56}, {56, 56}},
      {{60, 80}, {56, 84}},     // the nearest multiple of 28
      {{42, 70}, {56, 56}},     // one and a half tokens become two, two and a half two
      {{98, 126}, {112, 112}},  // three and a half become four, four and a half four
      {{480, 640}, {476, 644}},
      {{1, 1}, {56, 56}},  // grown to 3,136 pixels
      {{10, 10}, {56, 56}},
      {{20, 200}, {28, 196}},
      {{3, 600}, {28, 812}},        // the smaller side would vanish: both grow
      {{1080, 1920}, {728, 1316}},  // shrunk to 1,003,520 pixels
      {{4000, 3000}, {1148, 840}},
      {{100, 20'000}, {56, 14'140}}  // 200 times as wide as it is high, and just seen
  };
  for (const auto& [from, to] : rows) {
    const auto found = resized_sides(from, kRule);
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_EQ(found->height, to.height) << from.height << " x " << from.width;
    EXPECT_EQ(found->width, to.width) << from.height << " x " << from.width;
  }
}

TEST(ImageGrid, bounds_are_the_rules_own) {
  PatchRule rule;
  rule.pixels_max = 576 * 784;
  EXPECT_EQ(*resized_sides({.height = 1080, .width = 1920}, rule),
            (PictureSides{.height = 504, .width = 896}));
  rule.pixels_min = 200 * 200;
  EXPECT_EQ(*resized_sides({.height = 56, .width = 56}, rule),
            (PictureSides{.height = 224, .width = 224}));
}

TEST(ImageGrid, a_picture_that_no_one_sees_is_named_with_its_flaw) {
  const std::pair<PictureSides, const char*> rows[] = {
      {{.height = 3, .width = 20'000}, "20000 x 3 pixels: one side is more than 200 times"},
      {{.height = 0, .width = 5}, "from 1 to 1000000"},
      {{.height = 5, .width = -1}, "from 1 to 1000000"},
      {{.height = 1'000'001, .width = 1'000'000}, "from 1 to 1000000"}};
  for (const auto& [sides, flaw] : rows) {
    const auto found = resized_sides(sides, kRule);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::invalid);
    EXPECT_NE(describe(found.error()).find(flaw), std::string::npos) << describe(found.error());
  }
}

TEST(ImageGrid, a_grid_counts_patches_and_tokens) {
  const auto grid = image_grid({.height = 476, .width = 644}, kRule);
  EXPECT_EQ(grid, (VisionGrid{.frames = 1, .rows = 34, .columns = 46}));
  EXPECT_EQ(token_count(grid, kRule), 17 * 23);
  for (const auto& [frames, joined] : {std::pair{1, 1}, {2, 1}, {3, 2}, {8, 4}})
    EXPECT_EQ(video_grid({.height = 56, .width = 84}, frames, kRule).frames, joined);
}

TEST(ImageGrid, the_patches_of_a_token_stand_together) {
  const VisionGrid grid{.rows = 4, .columns = 6};
  const auto places = patch_places(grid, 2);
  ASSERT_EQ(places.size(), 24);
  const PatchPlace begin[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}};
  for (std::size_t i = 0; i < std::size(begin); ++i) EXPECT_EQ(places[i], begin[i]) << i;
  EXPECT_EQ(places[12], (PatchPlace{2, 0}));
  EXPECT_EQ(places.back(), (PatchPlace{3, 5}));
}

/// Pixels say where they are.
TEST(ImageGrid, a_patch_has_its_colours_frames_and_rows_in_that_order) {
  const PatchRule rule{.patch_side = 2, .merge_side = 2};
  const PictureSides sides{.height = 4, .width = 8};
  std::vector<std::uint8_t> pixels;
  for (int frame = 0; frame < 3; ++frame)
    for (int colour = 0; colour < 3; ++colour)
      for (int place = 0; place < 32; ++place)
        pixels.push_back(static_cast<std::uint8_t>(100 * frame + 32 * colour + place));
  const auto grid = video_grid(sides, 3, rule);
  EXPECT_EQ(grid, (VisionGrid{.frames = 2, .rows = 2, .columns = 4}));
  std::vector<float> values(static_cast<std::size_t>(grid.patches() * rule.values_of_patch()));
  const ColourScale plain{.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
  write_patches(pixels, sides, rule, plain, values);
  const auto pixel = [&](std::size_t patch, std::size_t value) {
    return std::lround(values[patch * 24 + value] * 255);
  };
  const auto at = [](int frame, int colour, int row, int column) {
    return (100 * frame + 32 * colour + 8 * row + column) % 256;
  };
  EXPECT_EQ(pixel(0, 0), at(0, 0, 0, 0));
  EXPECT_EQ(pixel(0, 1), at(0, 0, 0, 1));
  EXPECT_EQ(pixel(0, 2), at(0, 0, 1, 0));
  EXPECT_EQ(pixel(0, 4), at(1, 0, 0, 0));  // the next frame of the same patch
  EXPECT_EQ(pixel(0, 8), at(0, 1, 0, 0));  // the next colour
  EXPECT_EQ(pixel(1, 0), at(0, 0, 0, 2));  // the next patch of the token
  EXPECT_EQ(pixel(2, 0), at(0, 0, 2, 0));  // its second row
  EXPECT_EQ(pixel(4, 0), at(0, 0, 0, 4));  // the next token
  EXPECT_EQ(pixel(8, 0), at(2, 0, 0, 0));  // the second pair of frames
  EXPECT_EQ(pixel(8, 4), at(2, 0, 0, 0));  // which the last frame fills up
}

TEST(ImageGrid, colours_are_scaled_as_clip_scales_them) {
  const PatchRule rule{.patch_side = 1, .merge_side = 1};
  const std::uint8_t pixels[] = {255, 128, 0};
  std::vector<float> values(6);
  write_patches(pixels, {.height = 1, .width = 1}, rule, {}, values);
  EXPECT_FLOAT_EQ(values[0], (1 - 0.48145466F) / 0.26862954F);
  EXPECT_FLOAT_EQ(values[2], (128 / 255.0F - 0.4578275F) / 0.26130258F);
  EXPECT_FLOAT_EQ(values[5], -0.40821073F / 0.27577711F);
}

}  // namespace
}  // namespace tj::trainer
