// The gradient of what was added to each row of a product, where a GPU has a kernel for it: torch's
// sum over the rows takes twice as long as reading them. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "trainer/workload/gpu_kernel.h"

namespace tj::trainer {

/// For products of x whose parts have `width` columns each. Null: torch's operations do it.
GpuKernels* bias_kernels(const at::Tensor& x, std::int64_t width);

/// y [..., width] in bfloat16, to which bias [width] was added already, as a constant. Returns y;
/// bias gets its gradient, summed in float32.
at::Tensor with_bias_gradient(GpuKernels& kernels, const at::Tensor& y, const at::Tensor& bias);

/// The same, of y's three parts side by side, each [..., width / 3].
std::array<at::Tensor, 3> thirds_with_bias_gradient(GpuKernels& kernels, const at::Tensor& y,
                                                    const at::Tensor& bias);

}  // namespace tj::trainer
