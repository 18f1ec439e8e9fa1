// Qwen2.5-VL's vision tower: patches attend inside windows, in some layers inside whole frames, and
// those of one token are merged. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/workloads/qwen_vggt/qwen_config.h"
#include "trainer/workloads/qwen_vggt/turned.h"

namespace tj::trainer {

/// Rows that attend among themselves, all stretches of one length together.
struct Stretches {
  std::int64_t length = 0;
  at::Tensor rows;  // int64 [stretches x length], in the tower's order
};

/// Which patches see which, ready for attention. On the device.
struct AttentionPlan {
  std::vector<Stretches> stretches;
  at::Tensor back;  // int64 [patches]: from one behind the other to the tower's order
};
/// `bounds`: where stretches begin, and the end.
AttentionPlan attention_plan(std::span<const std::int64_t> bounds, at::Device device);

/// What the pictures of a pass have in common for all layers. On the device.
struct VisionPlan {
  at::Tensor order;  // int64 [tokens]: which group stands there in the tower
  at::Tensor back;   // int64 [tokens]: its inverse
  AttentionPlan windows;
  AttentionPlan frames;
  Turns turns;  // [patches, 1, head / 2], in the tower's order
};
VisionPlan vision_plan(std::span<const VisionGrid> grids, const QwenVision& vision,
                       at::Device device);

// P patches, M tokens, C the tower's width; all float32.

/// patches [P, values of a patch] -> [P, C] in the tower's order.
at::Tensor vision_patches(const at::Tensor& patches, const at::Tensor& weight,
                          const VisionPlan& plan);
/// tensors: the twelve of a layer, in the order of qwen_tensors().
at::Tensor vision_layer(const at::Tensor& x_PC, at::TensorList tensors, const QwenVision& vision,
                        const AttentionPlan& sees, const Turns& turns);
/// tensors: the five of the merger -> [M, width of the text], in the order of the pictures.
at::Tensor vision_merged(const at::Tensor& x_PC, at::TensorList tensors, const QwenVision& vision,
                         const VisionPlan& plan);

}  // namespace tj::trainer
