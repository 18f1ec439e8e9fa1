// Weights of a TAEHV that --init-from names: a published .pth or .safetensors, or a checkpoint of
// ours.
#pragma once
#include <filesystem>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

/// Of a model of `tensors`. A TGrow of the file that makes more frames than the model's gives its
/// last ones, as the published loader does. Fails with Code::invalid for a file that can't be read,
/// and for tensors that are missing, too many, or of another shape.
Result<TensorReader> open_taehv_weights(const std::filesystem::path& path,
                                        const std::vector<TensorSpec>& tensors);

}  // namespace tj::trainer
