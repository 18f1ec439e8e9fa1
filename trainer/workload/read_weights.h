// The weights of a trained model that is only used. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/workload/model_options.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

/// In the order of `specs`, each read in float32 and kept on the device in the type that products
/// are computed in. The failure is the reader's.
Result<std::vector<at::Tensor>> read_weights(const TensorReader& reader,
                                             std::span<const TensorSpec> specs,
                                             const ModelOptions& options);

}  // namespace tj::trainer
