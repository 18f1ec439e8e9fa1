// A piece of a model of which only the inputs are kept: backward runs it again (Chen et al. 2016:
// Training deep nets with sublinear memory cost). Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "trainer/workload/precision.h"

namespace tj::trainer {

using Tensors = std::vector<at::Tensor>;

struct Recomputation {
  /// A function of its inputs and of `parameters`, which it holds itself.
  std::function<Tensors(const Tensors& inputs)> compute;
  at::TensorList parameters;
  Precision precision = Precision::fp32;  // of the passes
};

/// compute(inputs), whose outputs all have a gradient. Inputs and parameters get theirs as if
/// nothing had been left out.
Tensors recomputed(const Recomputation& work, const Tensors& inputs);

}  // namespace tj::trainer
