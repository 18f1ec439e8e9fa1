// A layer of DINOv2 or of VGGT's aggregator: a transformer's, with scaled branches. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/workloads/qwen_vggt/turned.h"

namespace tj::trainer {

struct VggtLayerRule {
  std::int64_t heads = 0;
  double norm_eps = 1e-5;
  Turns turns = {};  // as vggt_turns() makes them; undefined: nothing turns
  /// Tokens stand frame by frame, so many of each, and see no later frame; 0: they see all.
  std::int64_t tokens_of_frame = 0;
};

/// Rotary positions in VGGT's order: the first half of a head turns by rows, the second by columns.
/// `places` int64 [T, 2] -> [T, 2, head / 4].
Turns vggt_turns(const at::Tensor& places, std::int64_t head_width);

/// x float32 [B, T, width] -> the same. `tensors`: as VggtTensors lists them, with or without norms
/// of queries and keys.
at::Tensor vggt_layer(const at::Tensor& x, at::TensorList tensors, const VggtLayerRule& rule);

}  // namespace tj::trainer
