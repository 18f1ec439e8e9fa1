// The learning rate of a step: linear warm-up, then half a cosine or a line down to the minimum, or
// no change at all. Pure.
#pragma once
#include <cstdint>

namespace tj::trainer {

enum class ScheduleKind { cosine, linear, constant };

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double lr = 0;      // reached at the end of the warm-up
  double min_lr = 0;  // reached at the last step; a constant schedule doesn't look at it
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;
  bool operator==(const Schedule&) const = default;
};

/// `step` counts from 0. Warm-up: lr * (step + 1) / warmup_steps, so that no step is wasted on a
/// rate of 0.
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace tj::trainer
