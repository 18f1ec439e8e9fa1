#include "trainer/workloads/qwen_vggt/vision_windows.h"

#include <algorithm>

namespace tj::trainer {
namespace {

/// The tokens of one frame.
struct TokenGrid {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Appends one frame, of which token 0 is `first`: windows by rows, the last of a row or column may
/// be smaller.
void append_frame(const TokenGrid& tokens, std::int64_t first, const WindowRule& rule,
                  VisionWindows& windows) {
  const auto patches_of_token = rule.merge_side * rule.merge_side;
  for (std::int64_t top = 0; top < tokens.rows; top += rule.window_tokens)
    for (std::int64_t left = 0; left < tokens.columns; left += rule.window_tokens) {
      const auto bottom = std::min(top + rule.window_tokens, tokens.rows);
      const auto right = std::min(left + rule.window_tokens, tokens.columns);
      for (auto row = top; row < bottom; ++row)
        for (auto column = left; column < right; ++column)
          windows.order.push_back(first + row * tokens.columns + column);
      windows.window_bounds.push_back(windows.window_bounds.back() +
                                      (bottom - top) * (right - left) * patches_of_token);
    }
}

}  // namespace

VisionWindows vision_windows(std::span<const VisionGrid> grids, const WindowRule& rule) {
  VisionWindows windows{.order = {}, .window_bounds = {0}, .frame_bounds = {0}};
  std::int64_t first = 0;
  for (const auto& grid : grids) {
    const TokenGrid tokens{.rows = grid.rows / rule.merge_side,
                           .columns = grid.columns / rule.merge_side};
    for (std::int64_t frame = 0; frame < grid.frames; ++frame) {
      append_frame(tokens, first, rule, windows);
      first += tokens.rows * tokens.columns;
      windows.frame_bounds.push_back(windows.frame_bounds.back() + grid.patches_of_frame());
    }
  }
  return windows;
}

std::vector<PatchPlace> vision_places(std::span<const VisionGrid> grids, std::int64_t merge_side) {
  std::vector<PatchPlace> places;
  for (const auto& grid : grids) {
    const auto of_frame = patch_places(grid, merge_side);
    for (std::int64_t frame = 0; frame < grid.frames; ++frame)
      places.insert(places.end(), of_frame.begin(), of_frame.end());
  }
  return places;
}

std::vector<std::int64_t> inverse_of(std::span<const std::int64_t> order) {
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    inverse[static_cast<std::size_t>(order[place])] = static_cast<std::int64_t>(place);
  return inverse;
}

}  // namespace tj::trainer
