// One kind of training, as far as the engine must know it: the shape of its model, and how to make
// it.
#pragma once
#include <memory>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

class Workload {
 public:
  virtual ~Workload() = default;

  /// All trained tensors in order.
  virtual std::vector<TensorSpec> tensors() const = 0;
  /// The pieces in which the model computes, in the order of the forward pass; their tensors are
  /// indices of tensors().
  virtual std::vector<ModelBlock> blocks() const = 0;

  virtual std::unique_ptr<Model> make_model(const ModelOptions& options,
                                            const ModelKeeper& keeper) const = 0;
};

}  // namespace tj::trainer
