// Rotary positions (Su et al. 2021, arXiv 2104.09864). Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

namespace tj::trainer {

/// x [B, heads, T, width], in its type: each value of the first half turns with its neighbour of
/// the second. `cosine` and `sine`: of the angles, float32, without a gradient, and broadcast to
/// [B, heads, T, width / 2].
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine);

// Once by a loop over float32 on the host and once by tensor operations on any device; the same
// numbers.
at::Tensor rotated_by_loop(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine);
at::Tensor rotated_by_tensors(const at::Tensor& x, const at::Tensor& cosine,
                              const at::Tensor& sine);

}  // namespace tj::trainer
