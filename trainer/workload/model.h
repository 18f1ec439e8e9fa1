// What the engine trains, as it sees it: tensors, and passes over batches that add up a loss.
// Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/workload/model_options.h"

namespace tj::trainer {

/// What a SampleSource has read for one pass, on the device of the weights.
using Batch = std::vector<at::Tensor>;

/// Of all samples of a pass, on the device: scalars.
struct PassSums {
  at::Tensor loss;                  // float32; has a gradient
  std::vector<at::Tensor> metrics;  // as many as the workload says; no gradient
  /// For the workload's memory(): uint8 [rows, row_bytes], as many for each sample, in their order.
  at::Tensor remembered = {};
};

/// Tells the hooks of a block, if there are any, and computes it.
template <typename Compute>
at::Tensor in_block(BlockHooks* hooks, std::size_t index, Compute&& compute) {
  if (hooks == nullptr) return compute();
  hooks->before(index);
  const at::Tensor output = compute();
  hooks->after(index, output);
  return output;
}

class Model {
 public:
  virtual ~Model() = default;

  /// `first_sample`: the global number of the batch's first sample, by which all that is random
  /// is drawn; without it nothing is drawn, as in an evaluation.
  virtual PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const = 0;

  /// Begins what of a later pass over `next` depends on no weights that are trained, for a GPU to
  /// do beside the pass that is computed first; pass() then goes on from there, with the same bits.
  /// Batches that were begun come in that order, or not at all.
  virtual void ahead(const Batch& /*next*/) const {}

  /// Something to look at of a batch that is not trained on: uint8 [height, width, 3]. Only where
  /// the workload draws pictures. Called on all ranks, each with its own part of the batch.
  virtual at::Tensor picture(const Batch&) const { return {}; }

  /// In the order of the workload's tensors(): trained, frozen and buffers.
  virtual const std::vector<at::Tensor>& tensors() const = 0;
};

}  // namespace tj::trainer
