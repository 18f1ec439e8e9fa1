// LayerNorm in a residual stream: the sum of the stream and a branch, and its norm, by one kernel
// where a GPU keeps the stream in bfloat16. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/workload/gpu_kernel.h"
#include "trainer/workload/precision.h"

namespace tj::trainer {

struct ResidualNorm {
  at::Tensor sum;     // x + branch
  at::Tensor normed;  // (sum - mean) / sqrt(variance + eps) * weight + bias, along the last extent
};

/// In which type a stream of `width` is to be kept on that device: float32, unless the passes are
/// bf16 and the device has the kernel for it.
at::ScalarType residual_type(Precision precision, at::Device device, std::int64_t width);

/// x and branch [..., width]; weight and bias [width] of any type. The norm is computed in float32
/// (Ba, Kiros and Hinton 2016: Layer normalization), and has the type of the stream.
ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                           const at::Tensor& bias, double eps);
/// Of x alone, which is the sum: who goes on with that has its gradient added by the kernel.
ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           double eps);

/// By the kernel, whichever device has it. x and branch, which may be undefined, are bfloat16 of a
/// width that is a multiple of 8 and at most 4096, weight and bias float32.
ResidualNorm residual_norm_by_kernel(GpuKernels& kernels, const at::Tensor& x,
                                     const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double eps);

}  // namespace tj::trainer
