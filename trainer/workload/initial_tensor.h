// The tensors of a model before its first step. Includes torch.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/workload/model_options.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

at::Device device_of(std::optional<int> gpu);

/// All tensors by their specs: the same numbers for the same seed on every device, since they come
/// from the CPU, one after another. What `keeper` places is where it has placed it.
std::vector<at::Tensor> initial_tensors(std::span<const TensorSpec> specs,
                                        const ModelOptions& options, const ModelKeeper& keeper);

}  // namespace tj::trainer
