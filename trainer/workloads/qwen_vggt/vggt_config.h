// The shape of VGGT's aggregator (arXiv 2503.11651), which a navigation policy looks through, and
// its tensors. Torch-free. Heads for depth, points, cameras and tracks are no part of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

/// Defaults are those of VGGT-1B.
struct VggtConfig {
  std::int64_t width = 1024;
  std::int64_t hidden = 4096;  // width of all MLPs
  std::int64_t heads = 16;
  std::int64_t layers = 24;       // each attends inside frames, then over all frames
  std::int64_t dino_layers = 24;  // of the DINOv2 (arXiv 2304.07193) that makes tokens of patches
  std::int64_t patch_side = 14;
  std::int64_t positions_side = 37;  // patches along a side of the square that positions are for
  std::int64_t registers = 4;
  bool operator==(const VggtConfig&) const = default;

  std::int64_t head_width() const { return width / heads; }
  /// Tokens of a frame that stand before its patches: the camera's, and registers.
  std::int64_t special_tokens() const { return 1 + registers; }
};

/// Why no such model can be made; empty: it can.
std::string vggt_flaw(const VggtConfig& config);

inline constexpr std::size_t kTensorsOfDinoLayer = 14;
inline constexpr std::size_t kTensorsOfVggtLayer = 18;

/// All tensors, frozen, and where those of each part begin.
struct VggtTensors {
  std::vector<TensorSpec> specs;  // named as the published files name them
  /// Token of the class, positions, registers, weight and bias of the patches.
  std::size_t patches = 0;
  /// norm, qkv, proj, scale, norm, fc1, fc2, scale: of all but the scales weight and bias.
  std::vector<std::size_t> dino_layers;
  std::size_t dino_norm = 0;
  std::size_t special = 0;  // of the camera, of the registers: those of the first frame, of others
  /// As in DINO, with norms of queries and keys behind qkv.
  std::vector<std::size_t> frame_layers;
  std::vector<std::size_t> global_layers;
};

VggtTensors vggt_tensors(const VggtConfig& config);

}  // namespace tj::trainer
