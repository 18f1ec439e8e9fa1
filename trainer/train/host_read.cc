#include "trainer/train/host_read.h"

#include <torch/types.h>

#include "trainer/values/device_stream.h"

namespace tj::trainer {

// Torch takes pinned memory for a copy to the host that does not block.
HostRead::HostRead(const at::Tensor& numbers)
    : on_host_(numbers.to(at::kCPU, /*non_blocking=*/true)) {
  const auto device = numbers.device();
  if (device.is_cpu()) return;
  copied_ = event_in(current_stream(device));
}

at::Tensor HostRead::wait() {
  if (copied_) copied_->synchronize();
  return on_host_;
}

}  // namespace tj::trainer
