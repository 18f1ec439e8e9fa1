#include "trainer/train/logical_shard_tree.h"

#include <torch/types.h>

#include "trainer/comm/tree_all_reduce.h"

namespace tj::trainer {

LogicalShardTree::LogicalShardTree(const std::vector<at::Tensor>& parameters) {
  std::int64_t size = 0;
  for (const auto& parameter : parameters) size += parameter.numel();
  buffer_.push_back(torch::zeros({size}, parameters.front().options().requires_grad(false)));
  std::int64_t begin = 0;
  for (const auto& parameter : parameters) {
    parameter.mutable_grad() =
        buffer_[0].narrow(0, begin, parameter.numel()).view(parameter.sizes());
    begin += parameter.numel();
  }
}

LogicalShardTree::LogicalShardTree(const at::Tensor& buffer) : buffer_{buffer} {}

LogicalShardTree::~LogicalShardTree() = default;
LogicalShardTree::LogicalShardTree(LogicalShardTree&&) noexcept = default;

void LogicalShardTree::clear() { buffer_[0].zero_(); }

at::Tensor& LogicalShardTree::at_level(std::size_t level) {
  if (level == subtrees_.size()) {
    subtrees_.push_back(torch::empty_like(buffer_[0]));
    is_full_.push_back(false);
  }
  return subtrees_[level];
}

void LogicalShardTree::add_logical_shard() {
  // As a binary counter: two subtrees of one level become one of the next.
  std::size_t level = 0;
  at_level(0);
  for (; is_full_[level]; ++level, at_level(level)) {
    buffer_[0].add_(subtrees_[level]);
    is_full_[level] = false;
  }
  subtrees_[level].copy_(buffer_[0]);
  is_full_[level] = true;
}

void LogicalShardTree::sum(Communicator& communicator) {
  sum_own();
  tree_all_reduce(communicator, buffer_[0]);
}

void LogicalShardTree::sum_own() {
  TORCH_CHECK(std::ranges::count(is_full_, true) == 1,
              "a power of two of logical shards makes one tree");
  const auto root = static_cast<std::size_t>(std::ranges::find(is_full_, true) - is_full_.begin());
  buffer_[0].copy_(subtrees_[root]);
  is_full_[root] = false;
}

}  // namespace tj::trainer
