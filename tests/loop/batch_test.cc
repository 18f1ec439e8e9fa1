#include "operator/loop/batch.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;

/// Requests that wait until the test answers them, and time that it turns.
struct Pending {
  struct Open {
    std::size_t index = 0;
    std::function<void(RequestEnd)> done;
  };
  boost::asio::io_context loop;
  SteadyTime now{1h};
  Alarm alarm{loop, [this] { return now; }};
  Pace pace;
  std::vector<Open> open;
  std::vector<std::size_t> started;
  std::optional<BatchEnd> end;

  explicit Pending(std::size_t width_max) : pace(width_max) {}

  void run(const BatchSize& size) {
    run_batch(
        size, pace, alarm,
        [this](std::size_t index, std::function<void(RequestEnd)> done) {
          started.push_back(index);
          open.push_back({index, std::move(done)});
        },
        [this](BatchEnd ended) {
          EXPECT_FALSE(end.has_value()) << "it ends once";
          end = ended;
        });
  }
  /// Answers all that are open now; returns how many those were.
  std::size_t answer(const RequestEnd& answer) {
    const auto round = std::exchange(open, {});
    for (const Open& request : round) request.done(answer);
    return round.size();
  }
  std::vector<std::size_t> rounds_to_the_end() {
    std::vector<std::size_t> rounds;
    while (!end) rounds.push_back(answer({}));
    return rounds;
  }
  void wait(std::chrono::milliseconds duration) {
    now += duration;
    alarm.wake();
  }
};

RequestEnd failed() { return {.ok = false, .busy_for = {}}; }
RequestEnd busy(std::chrono::milliseconds wait) { return {.ok = false, .busy_for = wait}; }

TEST(Batch, takes_all_that_the_pace_allows_once_the_first_has_gone_well) {
  Pending pending(8);
  pending.run({.count = 40, .width_first = 1});
  EXPECT_EQ(pending.rounds_to_the_end(), (std::vector<std::size_t>{1, 8, 8, 8, 8, 7}));
}

TEST(Batch, a_refusal_of_the_first_costs_one_request) {
  Pending pending(16);
  pending.run({.count = 1'000, .width_first = 1});
  pending.answer(failed());
  EXPECT_TRUE(pending.end);
  EXPECT_EQ(pending.started.size(), 1u);
}

TEST(Batch, waits_for_what_is_in_flight_after_a_failure) {
  Pending pending(3);
  pending.run({.count = 10, .width_first = 3});
  const auto round = std::exchange(pending.open, {});
  round[0].done(failed());
  EXPECT_FALSE(pending.end);
  round[1].done({});
  round[2].done({});
  EXPECT_TRUE(pending.end);
  EXPECT_EQ(pending.started.size(), 3u);
}

TEST(Batch, of_nothing_is_done_at_once) {
  Pending pending(1);
  pending.run({.count = 0, .width_first = 1});
  EXPECT_TRUE(pending.end);
}

TEST(Batch, may_be_answered_from_inside_the_call) {
  boost::asio::io_context loop;
  Alarm alarm(loop, [] { return SteadyTime{1h}; });
  Pace pace(4);
  std::size_t started = 0;
  bool all_done = false;
  run_batch(
      {.count = 100, .width_first = 1}, pace, alarm,
      [&](std::size_t index, const auto& done) {
        EXPECT_EQ(index, started++);
        done(RequestEnd{});
      },
      [&](const BatchEnd&) { all_done = true; });
  EXPECT_TRUE(all_done);
  EXPECT_EQ(started, 100u);
}

TEST(Batch, asks_a_busy_server_for_the_same_again_when_it_said) {
  Pending pending(4);
  pending.run({.count = 3, .width_first = 1});
  pending.answer(busy(2s));
  pending.wait(1'999ms);
  EXPECT_TRUE(pending.open.empty());
  EXPECT_FALSE(pending.end);
  pending.wait(1ms);
  ASSERT_EQ(pending.open.size(), 1u);
  pending.rounds_to_the_end();
  EXPECT_EQ(pending.started, (std::vector<std::size_t>{0, 0, 1, 2}));
  EXPECT_FALSE(pending.end->gave_up_busy_for);
}

TEST(Batch, halves_its_width_once_for_a_round_of_refusals_and_wins_it_back_one_by_one) {
  Pending pending(16);
  pending.run({.count = 200, .width_first = 16});
  EXPECT_EQ(pending.answer(busy(1s)), 16u);
  EXPECT_EQ(pending.pace.width(), 8u);
  pending.wait(1s);
  EXPECT_EQ(pending.open.size(), 8u);
  pending.open.front().done({});
  EXPECT_EQ(pending.pace.width(), 9u);
  pending.open.erase(pending.open.begin());
  EXPECT_EQ(pending.open.size(), 9u) << "one for the place that is free, one for the new one";
  pending.rounds_to_the_end();
  EXPECT_EQ(pending.pace.width(), 16u) << "and not more";
  EXPECT_EQ(pending.started.size(), 216u);
}

TEST(Batch, keeps_what_an_earlier_one_has_learnt) {
  Pending pending(16);
  pending.run({.count = 16, .width_first = 16});
  pending.answer(busy(1s));
  pending.wait(1s);
  pending.rounds_to_the_end();
  pending.pace.was_refused(pending.pace.round(), pending.now, 0ms);
  const std::size_t width = pending.pace.width();
  ASSERT_LT(width, 16u);
  pending.end.reset();
  pending.run({.count = 100, .width_first = 16});
  EXPECT_EQ(pending.open.size(), width);
}

TEST(Batch, gives_up_on_a_server_that_stays_busy) {
  Pending pending(4);
  pending.run({.count = 10, .width_first = 1});
  for (int pause = 0; !pending.end && pause <= kPausesMax; ++pause) {
    pending.answer(busy(1s));
    pending.wait(1s);
  }
  ASSERT_TRUE(pending.end);
  EXPECT_EQ(pending.end->gave_up_busy_for, 1s);
  EXPECT_EQ(pending.started.size(), static_cast<std::size_t>(kPausesMax) + 1);
}

TEST(Batch, leaves_a_long_wait_to_the_queue) {
  Pending pending(4);
  pending.run({.count = 10, .width_first = 1});
  pending.answer(busy(kPauseMax + 1ms));
  ASSERT_TRUE(pending.end);
  EXPECT_EQ(pending.end->gave_up_busy_for, kPauseMax + 1ms);
}

}  // namespace
}  // namespace tj
