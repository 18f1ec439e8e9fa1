// Which patches of Qwen2.5-VL's vision tower see each other: windows in most layers, whole frames
// in the others; and where each patch stands. Pure: no torch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {

struct WindowRule {
  std::int64_t merge_side = 2;
  std::int64_t window_tokens = 4;  // along each side: window_size / merge_side / patch_side
};

/// Of all pictures and videos of a pass, one behind the other. Groups are the patches of one token.
struct VisionWindows {
  /// The tower's order: [groups], which group stands there ("window_index").
  std::vector<std::int64_t> order;
  /// In that order, where each window begins, in patches, and the end ("cu_window_seqlens"); none
  /// is empty.
  std::vector<std::int64_t> window_bounds;
  /// The same of whole frames ("cu_seqlens"); frames stay together in the tower's order.
  std::vector<std::int64_t> frame_bounds;
};

VisionWindows vision_windows(std::span<const VisionGrid> grids, const WindowRule& rule);

/// Of each patch before it is put into the tower's order: its row and column in its frame, for the
/// rotary positions.
std::vector<PatchPlace> vision_places(std::span<const VisionGrid> grids, std::int64_t merge_side);

/// The inverse of a permutation.
std::vector<std::int64_t> inverse_of(std::span<const std::int64_t> order);

}  // namespace tj::trainer
