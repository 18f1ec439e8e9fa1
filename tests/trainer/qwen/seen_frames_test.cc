// Which frames of a video are seen, and how large: numbers that qwen_vl_utils gives.
#include "trainer/workloads/qwen_vggt/seen_frames.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(SeenFrames, are_spread_evenly_and_even_in_number) {
  EXPECT_EQ(seen_frames(48, 24, {}), (Numbers{0, 16, 31, 47}));
  EXPECT_EQ(seen_frames(25, 10, {}), (Numbers{0, 8, 16, 24})) << "5 are wanted";
  EXPECT_EQ(seen_frames(5, 10, {}), (Numbers{0, 1, 3, 4})) << "4 at least";
  EXPECT_EQ(seen_frames(3, 10, {}), (Numbers{0, 2})) << "of 3";
  EXPECT_EQ(seen_frames(1, 10, {}), (Numbers{0}));
  EXPECT_EQ(seen_frames(25, 10, {.min = 5}).size(), 6U) << "6 at least, an even number";
  EXPECT_EQ(seen_frames(100, 10, {}).size(), 20U);
  EXPECT_EQ(seen_frames(100, 10, {.of_second = 1}).size(), 10U);
  EXPECT_EQ(seen_frames(100, 10, {.max = 9}).size(), 8U);
  EXPECT_EQ(seen_frames(100, 10, {.max = 2}), (Numbers{0, 99}));
  EXPECT_EQ(seen_frames(100, 10, {.max = 1}), (Numbers{0}));
  EXPECT_EQ(seen_frames(100'000'000, 0.001, {}).back(), 99'999'999);
}

TEST(SeenFrames, together_take_nine_tenths_of_a_conversation_at_most) {
  const PatchRule pictures{.pixels_min = 3136, .pixels_max = 12'845'056};
  const auto rule = rule_of_frames(pictures, 4, 8192, {});
  EXPECT_EQ(rule.pixels_min, 100'352);
  EXPECT_EQ(rule.pixels_max, 602'112);
  EXPECT_EQ(rule.patch_side, pictures.patch_side);
  EXPECT_EQ(rule_of_frames(pictures, 32, 8192, {}).pixels_max, 361'267);
  EXPECT_EQ(rule_of_frames(pictures, 768, 128'000, {}).pixels_max, 235'200);
  EXPECT_EQ(rule_of_frames(pictures, 768, 8192, {}).pixels_max, 105'369) << "1.05 of the least";
  const auto small = rule_of_frames(pictures, 768, 8192, {.pixels_max = 3136});
  EXPECT_EQ(small.pixels_min, 3136);
  EXPECT_EQ(small.pixels_max, 3136);
}

TEST(SeenFrames, are_so_far_apart_in_time) {
  EXPECT_FLOAT_EQ(seconds_of_patch(4, 48, 24, {}), 1.0F);
  EXPECT_FLOAT_EQ(seconds_of_patch(6, 7, 2, {}), 7.0F / 6);
  EXPECT_FLOAT_EQ(seconds_of_patch(1, 1, 2, {}), 1.0F);
}

}  // namespace
}  // namespace tj::trainer
