#include "trainer/comm/tree_all_reduce.h"

#include <gtest/gtest.h>

#include "tests/trainer/engine/thread_ranks.h"

namespace tj::trainer {
namespace {

at::Tensor part_of(int rank, std::int64_t size) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank) + 1);
  return torch::randn({size}, generator) * std::pow(10.0, rank % 4);
}

/// ((0 + 1) + (2 + 3)) + ..., written down.
at::Tensor written_down(int first, int count, std::int64_t size) {
  if (count == 1) return part_of(first, size);
  return written_down(first, count / 2, size) + written_down(first + count / 2, count / 2, size);
}

std::vector<at::Tensor> reduced(int world_size, std::int64_t size) {
  std::vector<at::Tensor> results;
  for (int rank = 0; rank < world_size; ++rank) results.push_back(part_of(rank, size));
  on_ranks(world_size, [&](Communicator& communicator) {
    tree_all_reduce(communicator, results[static_cast<std::size_t>(communicator.rank())]);
  });
  return results;
}

TEST(TreeAllReduce, every_rank_has_the_bits_of_the_tree) {
  for (const int world_size : {1, 2, 4, 8}) {
    for (const std::int64_t size : {1, 3, 64, 1001}) {  // also fewer elements than ranks
      const auto wanted = written_down(0, world_size, size);
      for (const auto& result : reduced(world_size, size))
        EXPECT_TRUE(result.equal(wanted)) << world_size << " ranks, " << size << " elements";
    }
  }
}

TEST(TreeAllReduce, the_sum_of_rows_has_the_same_bits) {
  for (const int count : {1, 2, 4, 8}) {
    std::vector<at::Tensor> rows;
    for (int rank = 0; rank < count; ++rank) rows.push_back(part_of(rank, 33));
    auto sum = torch::empty({33});
    tree_sum(rows, sum);
    EXPECT_TRUE(sum.equal(written_down(0, count, 33))) << count;
  }
}

TEST(TreeAllReduce, other_numbers_of_ranks_are_refused) {
  Mailboxes mailboxes;
  ThreadRank communicator(mailboxes, 0, 3);
  auto tensor = torch::ones({4});
  EXPECT_THROW(tree_all_reduce(communicator, tensor), c10::Error);
}

}  // namespace
}  // namespace tj::trainer
