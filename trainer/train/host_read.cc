#include "trainer/train/host_read.h"

#include <torch/torch.h>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace tj::trainer {

// Torch takes pinned memory for a copy to the host that does not block.
HostRead::HostRead(const at::Tensor& numbers)
    : on_host_(numbers.to(at::kCPU, /*non_blocking=*/true)) {
  const auto device = numbers.device();
  if (device.is_cpu()) return;
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

at::Tensor HostRead::wait() {
  if (copied_) copied_->synchronize();
  return on_host_;
}

}  // namespace tj::trainer
