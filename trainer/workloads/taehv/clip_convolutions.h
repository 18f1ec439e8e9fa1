// TAEHV's convolutions over time and space. Each is the plain one in other words, with less to
// compute or to keep for backward. Includes torch.
//
// Shapes: N clips, T frames, C channels, H x W pixels. Frames are [N T, C, H, W] with the channels
// last in memory: oneDNN and cuDNN compute fastest in that order, and copy nothing between layers.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tj::trainer {

/// The same values in that order.
at::Tensor channels_last(const at::Tensor& x);

/// Padded so that height and width stay, but for the stride; as many groups as the weight has it.
/// `bias` may be undefined.
at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     std::int64_t stride = 1);

struct MemoryKernel {
  at::Tensor weight;  // [O, 2 C, 3, 3]
  at::Tensor bias;
};
/// Of the channels of each frame and of the one before it in its clip; zeros before the first. Only
/// x is kept for backward, not the two side by side.
at::Tensor convolved_with_past(const at::Tensor& x, const MemoryKernel& kernel, std::int64_t clips);

/// Of x at twice its height and width, each pixel repeated. `weight` is [O, C, 3, 3]: each of four
/// outputs sees 2 x 2 pixels of x, so it is four kernels of 2 x 2, less than half of the work.
at::Tensor convolved_doubled(const at::Tensor& x, const at::Tensor& weight);

/// `count` successive frames as one of `count` x C channels, and back.
at::Tensor frames_folded(const at::Tensor& x, std::int64_t count);
at::Tensor frames_unfolded(const at::Tensor& x, std::int64_t count);

/// Without the first `count` frames of each clip.
at::Tensor without_first(const at::Tensor& x, std::int64_t count, std::int64_t clips);

}  // namespace tj::trainer
