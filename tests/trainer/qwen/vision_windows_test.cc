#include "trainer/workloads/qwen_vggt/vision_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tj::trainer {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr WindowRule kRule{.merge_side = 2, .window_tokens = 4};

VisionWindows of(std::initializer_list<VisionGrid> grids, const WindowRule& rule = kRule) {
  return vision_windows(std::vector(grids), rule);
}

TEST(VisionWindows, a_picture_of_one_window_stays_in_its_order) {
  const auto windows = of({{.frames = 1, .rows = 4, .columns = 4}});
  EXPECT_EQ(windows.order, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(windows.window_bounds, (Numbers{0, 16}));
  EXPECT_EQ(windows.frame_bounds, (Numbers{0, 16}));
}

/// 4 x 8 tokens: exactly two windows, and no empty third one.
TEST(VisionWindows, whole_windows_leave_no_empty_ones) {
  const auto windows = of({{.frames = 1, .rows = 8, .columns = 16}});
  EXPECT_EQ(windows.window_bounds, (Numbers{0, 64, 128}));
  EXPECT_EQ(Numbers(windows.order.begin(), windows.order.begin() + 8),
            (Numbers{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(windows.order[16], 4);
}

/// 5 x 6 tokens: windows of 4 x 4, 4 x 2, 1 x 4 and 1 x 2.
TEST(VisionWindows, what_is_left_at_the_edges_is_a_smaller_window) {
  const auto windows = of({{.frames = 1, .rows = 10, .columns = 12}});
  EXPECT_EQ(windows.window_bounds, (Numbers{0, 64, 96, 112, 120}));
  EXPECT_EQ(Numbers(windows.order.begin() + 16, windows.order.end()),
            (Numbers{4, 5, 10, 11, 16, 17, 22, 23, 24, 25, 26, 27, 28, 29}));
}

TEST(VisionWindows, frames_and_pictures_have_windows_of_their_own) {
  const auto windows =
      of({{.frames = 2, .rows = 4, .columns = 4}, {.frames = 1, .rows = 2, .columns = 10}});
  EXPECT_EQ(windows.frame_bounds, (Numbers{0, 16, 32, 52}));
  EXPECT_EQ(windows.window_bounds, (Numbers{0, 16, 32, 48, 52}));
  EXPECT_EQ(windows.order, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

/// Over many sizes: a permutation, windows no larger than they may be, and inside of one frame.
TEST(VisionWindows, every_token_is_in_one_window_of_its_frame) {
  for (std::int64_t rows = 1; rows <= 9; ++rows)
    for (std::int64_t columns = 1; columns <= 9; ++columns) {
      const VisionGrid grid{.frames = 2, .rows = 2 * rows, .columns = 2 * columns};
      const auto windows = of({grid, grid});
      auto sorted = windows.order;
      std::ranges::sort(sorted);
      Numbers all(static_cast<std::size_t>(4 * rows * columns));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(sorted, all);
      EXPECT_EQ(windows.window_bounds.back(), windows.frame_bounds.back());
      for (std::size_t i = 0; i + 1 < windows.window_bounds.size(); ++i) {
        const auto size = windows.window_bounds[i + 1] - windows.window_bounds[i];
        EXPECT_TRUE(size >= 4 && size <= 64) << size;
      }
      for (const auto bound : windows.frame_bounds)
        EXPECT_TRUE(std::ranges::binary_search(windows.window_bounds, bound));
    }
}

TEST(VisionWindows, a_permutation_and_its_inverse_leave_all_in_its_place) {
  const auto order = of({{.frames = 1, .rows = 10, .columns = 12}}).order;
  const auto inverse = inverse_of(order);
  for (std::size_t place = 0; place < order.size(); ++place)
    EXPECT_EQ(order[static_cast<std::size_t>(inverse[place])], static_cast<std::int64_t>(place));
}

TEST(VisionWindows, places_begin_anew_in_each_frame) {
  const std::vector<VisionGrid> grids{{.frames = 2, .rows = 2, .columns = 4}};
  const auto places = vision_places(grids, 2);
  ASSERT_EQ(places.size(), 16);
  EXPECT_EQ(places[5], (PatchPlace{0, 3}));
  EXPECT_EQ(places[8], (PatchPlace{0, 0}));
  EXPECT_EQ(places[15], (PatchPlace{1, 3}));
}

}  // namespace
}  // namespace tj::trainer
