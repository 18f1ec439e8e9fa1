// Numbers that a device has computed, on their way to the host. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace tj::trainer {

/// A step has one of these, so that the host waits for its device once.
class HostRead {
 public:
  /// Begins to copy `numbers` behind what their device has to do so far. What it is given later
  /// need not be done when wait() returns.
  explicit HostRead(const at::Tensor& numbers);
  /// The numbers, on the host.
  at::Tensor wait();

 private:
  at::Tensor on_host_;
  std::optional<c10::Event> copied_;  // none on the CPU
};

}  // namespace tj::trainer
