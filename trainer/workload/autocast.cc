#include "trainer/workload/autocast.h"

#include <ATen/autocast_mode.h>

namespace tj::trainer {

at::ScalarType type_of(Precision precision) {
  if (precision == Precision::fp32) return at::kFloat;
  return precision == Precision::bf16 ? at::kBFloat16 : at::kHalf;
}

Autocast::Autocast(Precision precision, c10::DeviceType device) : device_(device) {
  if (precision == Precision::fp32) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device);
  is_active_ = true;
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, type_of(precision));
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!is_active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
}

}  // namespace tj::trainer
