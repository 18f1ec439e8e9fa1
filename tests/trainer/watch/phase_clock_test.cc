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

/// Asks the clock first: the bound then holds however long this thread waits for a core.
void expect_moved_since(steady_clock::time_point then, const PhaseClock& clock) {
  const double still_seconds = clock.seen().still_seconds;
  EXPECT_LE(still_seconds, std::chrono::duration<double>(steady_clock::now() - then).count());
}

TEST(PhaseClock, stands_still_until_something_happens) {
  PhaseClock clock;
  wait_still(clock, 0.02);
  auto before = steady_clock::now();
  clock.step_done(1);
  expect_moved_since(before, clock);
  wait_still(clock, 0.02);
  before = steady_clock::now();
  { const auto timed = clock.time(Section::data); }
  expect_moved_since(before, clock);
}

TEST(PhaseClock, moves_with_each_piece_of_long_work) {
  PhaseClock clock;
  wait_still(clock, 0.02);
  clock.moved();
  EXPECT_LT(clock.seen().still_seconds, 0.02);
  wait_still(clock, 0.02);
  clock.gradient_made();
  EXPECT_LT(clock.seen().still_seconds, 0.02);
}

TEST(PhaseClock, counts_gradients_since_the_last_collective) {
  PhaseClock clock;
  clock.gradient_made();
  clock.gradient_made();
  EXPECT_EQ(clock.seen().gradients, 2);
  const auto timed = clock.collective("all-reduce");
  EXPECT_EQ(clock.seen().gradients, 0);
}

TEST(PhaseClock, a_wait_for_some_ranks_is_no_collective_of_all) {
  PhaseClock clock;
  { const auto timed = clock.collective("broadcast"); }
  {
    const auto timed = clock.wait_for("exchange");
    const Seen seen = clock.seen();
    EXPECT_EQ(seen.waits_for, "exchange");
    EXPECT_EQ(seen.collectives, 1);
    EXPECT_FALSE(seen.is_in_collective);
    wait_still(clock, 0.01);
  }
  EXPECT_EQ(clock.seen().waits_for, "");
  EXPECT_GE(clock.seen().collective_seconds, 0.01);
}

TEST(PhaseClock, asks_the_device_that_it_follows) {
  PhaseClock clock;
  EXPECT_EQ(clock.seen().device, DeviceCollectives{});
  clock.follow_device([] { return DeviceCollectives{.begun = 8, .ended = 7}; });
  EXPECT_EQ(clock.seen().device.begun, 8);
  clock.follow_device({});
  EXPECT_EQ(clock.seen().device.begun, 0);
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

/// A device that has ended a section only when the test says so; each takes two seconds.
class SlowDevice final : public DeviceTimer {
 public:
  std::uint64_t begin() override { return next_++; }
  void end(std::uint64_t, Counted counted) override { given_.push_back({counted, 2.0}); }
  std::vector<Took> take_ended() override { return std::exchange(ended_, {}); }
  void work() { ended_ = std::exchange(given_, {}); }

 private:
  std::uint64_t next_ = 0;
  std::vector<Took> given_, ended_;
};

TEST(PhaseClock, counts_what_a_device_took_once_it_has_ended) {
  PhaseClock clock;
  SlowDevice device;
  clock.time_by(&device);
  clock.enter(Phase::step);
  { const auto timed = clock.time(Section::forward); }
  { const auto timed = clock.collective("all-reduce"); }
  EXPECT_FALSE(clock.seen().is_in_collective);
  EXPECT_EQ(clock.seen().forward_seconds, 0);
  device.work();
  clock.step_done(1);
  EXPECT_EQ(clock.seen().forward_seconds, 2);
  EXPECT_EQ(clock.seen().collective_seconds, 2);
  const auto of_step = clock.seen().step_section_seconds;
  EXPECT_EQ(of_step[static_cast<std::size_t>(Section::collective)], 2);
}

TEST(PhaseClock, counts_for_the_phase_in_which_a_section_ended) {
  PhaseClock clock;
  SlowDevice device;
  clock.time_by(&device);
  clock.enter(Phase::eval);
  { const auto timed = clock.time(Section::data); }
  device.work();
  clock.enter(Phase::step);
  clock.step_done(1);
  EXPECT_EQ(clock.seen().data_seconds, 2);
  EXPECT_EQ(clock.seen().step_section_seconds[static_cast<std::size_t>(Section::data)], 0);
}

TEST(PhaseClock, a_section_that_began_by_the_host_ends_by_it) {
  PhaseClock clock;
  SlowDevice device;
  {
    const auto timed = clock.time(Section::forward);
    clock.time_by(&device);
  }
  device.work();
  clock.step_done(1);
  EXPECT_LT(clock.seen().forward_seconds, 2);
  EXPECT_GT(clock.seen().forward_seconds, 0);
}

}  // namespace
}  // namespace tj::trainer
