// The learning rate of a step: linear warm-up, then half a cosine down to the minimum. Pure.
#pragma once
#include <cstdint>

namespace tj::trainer {

struct Schedule {
  double lr = 0;      // reached at the end of the warm-up
  double min_lr = 0;  // reached at the last step
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;
  bool operator==(const Schedule&) const = default;
};

/// `step` counts from 0. Warm-up: lr * (step + 1) / warmup_steps, so that no step is wasted on a
/// rate of 0.
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace tj::trainer
