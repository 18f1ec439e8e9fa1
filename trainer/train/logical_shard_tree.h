// Gradients whose bits don't depend on who computed them: the batch is cut into a fixed number of
// logical shards, and their gradients are added along one binary tree over all of them. A rank
// adds the subtree of its own; the ranks add the rest (trainer/comm/tree_all_reduce.h).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"

namespace tj::trainer {

class LogicalShardTree {
 public:
  /// From here on the gradients of `parameters` lie in one buffer.
  explicit LogicalShardTree(const std::vector<at::Tensor>& parameters);
  /// The gradients lie in `buffer` [n], float32, already.
  explicit LogicalShardTree(const at::Tensor& buffer);
  ~LogicalShardTree();
  LogicalShardTree(LogicalShardTree&&) noexcept;

  /// Before the backward of a logical shard.
  void clear();
  /// After it: takes its gradients.
  void add_logical_shard();
  /// Collective: leaves the sum over all ranks in the gradients. Needs a power of two of logical
  /// shards since the last sum.
  void sum(Communicator& communicator);
  /// The part of it before the ranks come in: the sum over this rank's logical shards.
  void sum_own();

 private:
  at::Tensor& at_level(std::size_t level);

  std::vector<at::Tensor> buffer_;    // one tensor, flat; the gradients are windows on it
  std::vector<at::Tensor> subtrees_;  // by level: the sum of 2^level logical shards, if is_full_
  std::vector<bool> is_full_;
};

}  // namespace tj::trainer
