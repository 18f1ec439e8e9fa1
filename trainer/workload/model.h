// What the engine trains, as it sees it: parameters, and passes over batches that add up a loss.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/workload/block_hooks.h"
#include "trainer/workload/precision.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// What a SampleSource has read for one pass, on the device of the weights.
using Batch = std::vector<at::Tensor>;

/// How the passes are computed. The weights are float32, unless they are kept elsewhere.
struct ModelOptions {
  std::uint64_t seed = 0;  // of the initial weights, and of all that is drawn in a pass
  Precision precision = Precision::fp32;  // of matrix products and attention
  bool recompute = false;  // keep a block's input alone, and run it again in backward
  std::optional<int> gpu;  // CUDA's index of the device that holds the weights; absent: the CPU
};

/// Where the weights are when they are not simply the model's own.
struct ModelKeeper {
  /// Takes the initial value of tensor `index`, and returns the parameter to compute with: of its
  /// shape, float32 or the precision of the passes.
  std::function<at::Tensor(std::size_t index, const at::Tensor& initial)> place;
  BlockHooks* hooks = nullptr;  // of the workload's blocks(); outlives the model
};

class Model {
 public:
  virtual ~Model() = default;

  /// The sum of the losses of all that counts in the batch: a scalar with a gradient.
  /// `first_sample`: the global number of its first sample; without it nothing is drawn.
  virtual at::Tensor loss_sum(const Batch& batch,
                              std::optional<std::int64_t> first_sample) const = 0;
  /// How much counts in the batch: what the sums over all ranks and passes of a step are divided
  /// by.
  virtual std::int64_t weight(const Batch& batch) const = 0;

  /// In the order of the workload's tensors().
  virtual const std::vector<at::Tensor>& parameters() const = 0;
  virtual const std::vector<std::string>& names() const = 0;
};

}  // namespace tj::trainer
