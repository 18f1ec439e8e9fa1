#include "trainer/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tj::trainer {

double learning_rate(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.lr * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  }
  if (schedule.kind == ScheduleKind::constant) return schedule.lr;
  const std::int64_t decay_steps = schedule.steps - 1 - schedule.warmup_steps;
  if (decay_steps <= 0) return schedule.lr;
  const double progress = std::min(
      1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(decay_steps));
  const double share = schedule.kind == ScheduleKind::linear
                           ? 1.0 - progress
                           : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return schedule.min_lr + share * (schedule.lr - schedule.min_lr);
}

}  // namespace tj::trainer
