#include "trainer/watch/phase_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

TEST(PhaseClock, tells_phase_step_and_collective) {
  PhaseClock clock;
  EXPECT_STREQ(to_string(clock.seen().phase), "start");
  clock.enter(Phase::step);
  clock.step_done(7);
  {
    const auto timed = clock.collective("all-reduce");
    const Seen seen = clock.seen();
    EXPECT_EQ(seen.phase, Phase::step);
    EXPECT_EQ(seen.step, 7);
    EXPECT_EQ(seen.collectives, 1);
    EXPECT_EQ(seen.collective, "all-reduce");
    EXPECT_TRUE(seen.is_in_collective);
  }
  EXPECT_FALSE(clock.seen().is_in_collective);
}

/// Spins until the clock itself says that `seconds` have passed.
void wait_still(const PhaseClock& clock, double seconds) {
  while (clock.seen().still_seconds < seconds) std::this_thread::yield();
}

/// A bound that holds however long this thread waits for a core.
double seconds_since(steady_clock::time_point then) {
  return std::chrono::duration<double>(steady_clock::now() - then).count();
}

TEST(PhaseClock, stands_still_until_something_happens) {
  PhaseClock clock;
  wait_still(clock, 0.02);
  auto before = steady_clock::now();
  clock.step_done(1);
  EXPECT_LE(clock.seen().still_seconds, seconds_since(before));
  wait_still(clock, 0.02);
  before = steady_clock::now();
  { const auto timed = clock.time(Section::data); }
  EXPECT_LE(clock.seen().still_seconds, seconds_since(before));
}

TEST(PhaseClock, adds_up_each_section) {
  PhaseClock clock;
  for (int pass = 0; pass < 2; ++pass) {
    const auto timed = clock.time(Section::forward);
    clock.enter(Phase::step);
    wait_still(clock, 0.01);
  }
  {
    const auto timed = clock.collective("broadcast");
    wait_still(clock, 0.01);
  }
  const Seen seen = clock.seen();
  EXPECT_GE(seen.forward_seconds, 0.02);
  EXPECT_GE(seen.collective_seconds, 0.01);
  EXPECT_EQ(seen.data_seconds, 0);
}

TEST(PhaseClock, names_come_back) {
  for (const Phase phase : {Phase::start, Phase::step, Phase::eval, Phase::save, Phase::end})
    EXPECT_EQ(phase_from(to_string(phase)), phase);
  EXPECT_EQ(phase_from("lunch"), Phase::start);
}

}  // namespace
}  // namespace tj::trainer
