// GELU of a product with bias where a GPU has the kernel for its backward pass. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include "trainer/workload/gpu_kernel.h"

namespace tj::trainer {

/// For what `bias_kernels()` gave. Null: torch's operations do it.
GpuKernels* gelu_kernels(GpuKernels* kernels);

/// The tanh form of GELU of x [..., width] in bfloat16, to which bias [width] was added already, as
/// a constant. The gradients of both come of one kernel; that of bias is summed in float32.
at::Tensor biased_gelu(GpuKernels& kernels, const at::Tensor& x, const at::Tensor& bias);

}  // namespace tj::trainer
