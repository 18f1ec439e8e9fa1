#include "trainer/comm/roll_call.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tj::trainer {
namespace {

std::string absent(const std::vector<int>& ranks, const RollCall& known) {
  return describe_absent(ranks, known);
}

TEST(RollCall, a_rank_alone_on_its_worker_needs_no_more_words) {
  EXPECT_EQ(absent({1, 3}, {}), "rank 1, rank 3");
  EXPECT_EQ(absent({}, {}), "");
}

TEST(RollCall, ranks_of_one_worker_are_named_together) {
  const RollCall known{.local_world_size = 8, .job = "", .nodes = {{2, "node-b"}}};
  EXPECT_EQ(absent({8, 9, 10, 11, 12, 13, 14, 15, 16, 18}, known),
            "ranks 8 to 15 (worker 1), rank 16 (worker 2, node node-b), rank 18 (worker 2, node "
            "node-b)");
}

TEST(RollCall, in_a_job_the_worker_is_its_pod) {
  EXPECT_EQ(absent({1}, {.local_world_size = 1, .job = "mnist", .nodes = {}}),
            "rank 1 (mnist-worker-1)");
  EXPECT_EQ(absent({3}, {.local_world_size = 2, .job = "mnist", .nodes = {{1, "node-b"}}}),
            "rank 3 (mnist-worker-1, node node-b)");
}

TEST(RollCall, of_many_the_first_are_named) {
  std::vector<int> all(100);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(absent(all, {}),
            "rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7, rank 8 and 92 more");
}

}  // namespace
}  // namespace tj::trainer
