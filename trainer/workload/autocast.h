// Passes in less than float32. Includes torch.
#pragma once
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "trainer/workload/precision.h"

namespace tj::trainer {

/// Of what is computed in `precision`.
at::ScalarType type_of(Precision precision);

/// Computes in `precision` what is safe in it, by torch's own lists, as long as it lives.
class Autocast {
 public:
  Autocast(Precision precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool is_active_ = false;
  bool was_enabled_ = false;
};

}  // namespace tj::trainer
