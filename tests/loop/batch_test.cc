#include "operator/loop/batch.h"

#include <gtest/gtest.h>

#include <vector>

namespace tj {
namespace {

/// Requests that wait until the test answers them.
struct Pending {
  std::vector<std::function<void(bool)>> open;
  std::size_t started = 0;
  bool all_done = false;

  void run(const BatchSize& size) {
    run_batch(
        size,
        [this](std::size_t, std::function<void(bool)> done) {
          ++started;
          open.push_back(std::move(done));
        },
        [this] { all_done = true; });
  }
  /// Answers all that are open now; returns how many those were.
  std::size_t answer(bool ok) {
    const auto round = std::exchange(open, {});
    for (const auto& done : round) done(ok);
    return round.size();
  }
};

TEST(Batch, doubles_its_width_with_each_good_round_up_to_the_bound) {
  Pending pending;
  pending.run({.count = 40, .width_first = 1, .width_max = 8});
  std::vector<std::size_t> rounds;
  while (!pending.all_done) rounds.push_back(pending.answer(true));
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 2, 4, 8, 8, 8, 8, 1}));
}

TEST(Batch, a_refusal_of_the_first_costs_one_request) {
  Pending pending;
  pending.run({.count = 1'000, .width_first = 1, .width_max = 16});
  pending.answer(false);
  EXPECT_TRUE(pending.all_done);
  EXPECT_EQ(pending.started, 1u);
}

TEST(Batch, waits_for_what_is_in_flight_after_a_failure) {
  Pending pending;
  pending.run({.count = 10, .width_first = 3, .width_max = 3});
  const auto first = pending.open.front();
  first(false);
  EXPECT_FALSE(pending.all_done);
  pending.open[1](true);
  pending.open[2](true);
  EXPECT_TRUE(pending.all_done);
  EXPECT_EQ(pending.started, 3u);
}

TEST(Batch, of_nothing_is_done_at_once) {
  Pending pending;
  pending.run({.count = 0, .width_first = 1, .width_max = 1});
  EXPECT_TRUE(pending.all_done);
}

TEST(Batch, may_be_answered_from_inside_the_call) {
  std::size_t started = 0;
  bool all_done = false;
  run_batch(
      {.count = 100, .width_first = 1, .width_max = 4},
      [&](std::size_t index, const auto& done) {
        EXPECT_EQ(index, started++);
        done(true);
      },
      [&] { all_done = true; });
  EXPECT_TRUE(all_done);
  EXPECT_EQ(started, 100u);
}

}  // namespace
}  // namespace tj
