// The dynamic loss scale of fp16 (Micikevicius et al. 2018), by the rules of torch.amp.GradScaler.
#pragma once
#include <cstdint>

namespace tj::trainer {

struct LossScale {
  double scale = 65536;
  std::int64_t good_steps = 0;  // since the last change
  bool operator==(const LossScale&) const = default;

  /// After a step: halved when a gradient was not finite, doubled after `growth_interval` good
  /// steps.
  void update(bool is_finite, std::int64_t growth_interval = 2000) {
    constexpr double kGrowth = 2.0;
    constexpr double kBackoff = 0.5;
    if (!is_finite) {
      *this = {.scale = scale * kBackoff};
    } else if (++good_steps == growth_interval) {
      *this = {.scale = scale * kGrowth};
    }
  }
};

}  // namespace tj::trainer
