#include "trainer/checkpoint/interference.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

std::optional<InterferenceReport> add_steps(Interference& watch, int count, double seconds) {
  std::optional<InterferenceReport> last;
  for (int step = 0; step < count; ++step) last = watch.add(seconds);
  return last;
}

TEST(Interference, compares_the_ten_steps_after_with_the_ten_before) {
  Interference watch;
  add_steps(watch, 3, 9.0);  // the first steps of a run are slow, and too long ago
  add_steps(watch, 10, 1.0);
  watch.save_began(13);
  EXPECT_FALSE(add_steps(watch, 9, 1.5));
  const auto report = watch.add(1.5);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->step, 13);
  EXPECT_DOUBLE_EQ(report->percent, 50);
  EXPECT_FALSE(add_steps(watch, 20, 1.0));
}

TEST(Interference, one_long_step_does_not_decide) {
  Interference watch;
  add_steps(watch, 10, 1.0);
  watch.save_began(10);
  watch.add(30.0);
  const auto report = add_steps(watch, 9, 1.0);
  ASSERT_TRUE(report);
  EXPECT_DOUBLE_EQ(report->percent, 0);
}

TEST(Interference, says_nothing_without_ten_steps_on_both_sides) {
  Interference watch;
  add_steps(watch, 9, 1.0);
  watch.save_began(9);
  EXPECT_FALSE(add_steps(watch, 10, 1.0));
  watch.save_began(19);
  EXPECT_FALSE(add_steps(watch, 5, 1.0));
  watch.save_began(24);
  const auto report = add_steps(watch, 10, 1.0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->step, 24);
}

}  // namespace
}  // namespace tj::trainer
