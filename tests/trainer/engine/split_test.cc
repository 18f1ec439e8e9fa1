// Communicators that are split off: collectives among some of the ranks, beside those of all.
#include <gtest/gtest.h>

#include "tests/trainer/engine/gloo_ranks.h"
#include "tests/trainer/engine/thread_ranks.h"
#include "trainer/train/zero/shard_ranks.h"

namespace tj::trainer {
namespace {

constexpr int kRanks = 4;

/// Over threads and over Gloo.
void on_both(const std::function<void(Communicator&)>& work) {
  on_ranks(kRanks, work);
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) { work(communicator); });
}

at::Tensor one(double value) { return torch::full({1}, value); }

TEST(Split, ranks_sum_among_themselves_and_all_still_can) {
  on_both([](Communicator& all) {
    ShardRanks ranks(all, 2);
    auto in_group = one(all.rank()), over_groups = one(all.rank()), everywhere = one(all.rank());
    const auto crossing = ranks.holders()->begin_all_reduce_sum(over_groups);
    ranks.sharers().all_reduce_sum(in_group);
    all.all_reduce_sum(everywhere);
    crossing->wait();
    EXPECT_EQ(in_group.item<float>(), all.rank() < 2 ? 0 + 1 : 2 + 3);
    EXPECT_EQ(over_groups.item<float>(), all.rank() % 2 == 0 ? 0 + 2 : 1 + 3);
    EXPECT_EQ(everywhere.item<float>(), 6);
  });
}

TEST(Split, places_and_names_are_those_of_the_list) {
  on_gloo_ranks(kRanks, [](Communicator& all, PhaseClock&) {
    const auto odd_and_even =
        all.split(all.rank() % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{1, 3});
    EXPECT_EQ(odd_and_even->rank(), all.rank() / 2);
    EXPECT_EQ(odd_and_even->world_size(), 2);
    EXPECT_EQ(odd_and_even->named(1), all.named(all.rank() % 2 == 0 ? 2 : 3));
    const auto alone = all.split(std::vector<int>{all.rank()});
    EXPECT_EQ(alone->world_size(), 1);
    auto again = odd_and_even->split(std::vector<int>{0, 1});  // of what was split off itself
    auto sum = one(all.rank());
    again->all_reduce_sum(sum);
    EXPECT_EQ(sum.item<float>(), all.rank() % 2 == 0 ? 2 : 4);
  });
}

TEST(Split, what_is_sent_counts_in_both) {
  on_both([](Communicator& all) {
    ShardRanks ranks(all, 2);
    const auto before = all.volume().elements_sent;
    auto whole = torch::ones({64});
    auto mine = torch::empty({32});
    ranks.sharers().reduce_scatter(whole, mine)->wait();
    EXPECT_EQ(ranks.sharers().volume().elements_sent, 32);
    ranks.holders()->begin_all_reduce_sum(mine)->wait();
    EXPECT_EQ(ranks.holders()->volume().elements_sent, 32);
    EXPECT_EQ(all.volume().elements_sent - before, 64);
    EXPECT_TRUE(mine.equal(torch::full({32}, 4.0)));
  });
}

/// Shards of gradients cross in the type in which they were reduced.
TEST(Split, sums_over_groups_may_be_of_bfloat16) {
  on_both([](Communicator& all) {
    ShardRanks ranks(all, 2);
    auto sum = torch::full({48}, all.rank() + 1, at::kBFloat16);
    ranks.holders()->begin_all_reduce_sum(sum)->wait();
    EXPECT_EQ(sum.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(sum.eq(all.rank() % 2 == 0 ? 4 : 6).all().item<bool>());
  });
}

}  // namespace
}  // namespace tj::trainer
