// How a model tells, block by block, what it is about to compute: whoever keeps its weights
// elsewhere brings them in time.
#pragma once
#include <cstddef>
#include <vector>

namespace at {
class Tensor;
}

namespace tj::trainer {

/// One piece of a model that computes as a whole, in the order of the forward pass.
struct ModelBlock {
  std::vector<std::size_t> tensors;  // that it uses; a tensor may be in several blocks
  bool reads_in_backward = true;     // false: its backward needs none of them
};

class BlockHooks {
 public:
  virtual ~BlockHooks() = default;
  /// Before block `index` computes. A block may be left out, but not done again or out of order.
  /// After hold() those that were done or left out may be done again, in any order.
  virtual void before(std::size_t index) = 0;
  /// After it. The gradient of `output` announces its backward.
  virtual void after(std::size_t index, const at::Tensor& output) = 0;
  /// From here to the end of the pass weights stay once they are brought. For a pass without a
  /// backward that computes its blocks many times; all ranks say it at the same place.
  virtual void hold() {}
};

}  // namespace tj::trainer
