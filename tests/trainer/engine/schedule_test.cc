#include "trainer/train/schedule.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(Schedule, warms_up_linearly_then_follows_half_a_cosine) {
  const Schedule schedule{.lr = 1.0, .min_lr = 0.1, .warmup_steps = 4, .steps = 13};
  struct Row {
    std::int64_t step;
    double lr;
  };
  const Row rows[] = {{0, 0.25}, {1, 0.5},  {3, 1.0}, {4, 1.0}, {6, 0.1 + 0.9 * 0.853553390593},
                      {8, 0.55}, {12, 0.1}, {20, 0.1}};
  for (const auto& row : rows)
    EXPECT_NEAR(learning_rate(schedule, row.step), row.lr, 1e-9) << row.step;
}

TEST(Schedule, linear_falls_evenly_and_constant_stays) {
  Schedule schedule{
      .kind = ScheduleKind::linear, .lr = 1.0, .min_lr = 0.2, .warmup_steps = 2, .steps = 7};
  EXPECT_NEAR(learning_rate(schedule, 2), 1.0, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 4), 0.6, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 6), 0.2, 1e-12);
  schedule.kind = ScheduleKind::constant;
  EXPECT_EQ(learning_rate(schedule, 0), 0.5);
  EXPECT_EQ(learning_rate(schedule, 6), 1.0);
}

TEST(Schedule, without_room_for_a_cosine_it_stays_at_the_top) {
  EXPECT_EQ(learning_rate({.lr = 1, .min_lr = 0, .warmup_steps = 0, .steps = 1}, 0), 1);
  EXPECT_EQ(learning_rate({.lr = 1, .min_lr = 0, .warmup_steps = 2, .steps = 2}, 1), 1);
  EXPECT_EQ(learning_rate({.lr = 1, .min_lr = 0, .warmup_steps = 10, .steps = 2}, 1), 0.2);
}

TEST(Schedule, never_leaves_its_bounds_and_falls_after_the_warm_up) {
  const Schedule schedule{.lr = 6e-4, .min_lr = 6e-5, .warmup_steps = 30, .steps = 300};
  double previous = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    const double lr = learning_rate(schedule, step);
    EXPECT_GT(lr, 0);
    EXPECT_LE(lr, schedule.lr);
    if (step < 30) {
      EXPECT_GT(lr, previous) << step;
    }
    if (step > 31) {
      EXPECT_LT(lr, previous) << step;
    }
    previous = lr;
  }
}

}  // namespace
}  // namespace tj::trainer
