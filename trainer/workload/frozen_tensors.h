// Which tensors of a model a user wants to stay as they are, by patterns on their names. Torch-free
// and pure.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

/// `tensors`, of which each trained one whose name matches one of the patterns is frozen. Fails
/// with Code::invalid for a pattern that matches no trained tensor, and names near ones, and where
/// nothing would be left to train; `flag` is the subject.
Result<std::vector<TensorSpec>> frozen_by(std::span<const std::string> patterns,
                                          std::vector<TensorSpec> tensors, const std::string& flag);

}  // namespace tj::trainer
