// Tensors of a GPU on their way into a checkpoint, beside what the GPU computes. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

namespace tj::trainer {

/// Copies in a stream of its own, through pinned memory: from other memory a GPU's copy would have
/// its driver's threads in it, and hold up the kernels of the training.
class DeviceToHost {
 public:
  explicit DeviceToHost(c10::Device device);

  /// By the thread that trains: what is copied from now on is what its work so far makes.
  void follow();
  /// Returns once the bytes are there. Needs a contiguous tensor of as many bytes. On any thread.
  void copy(const at::Tensor& source, std::span<std::byte> bytes);

 private:
  const c10::Device device_;
  const c10::Stream stream_;
  std::mutex mutex_;                  // one copy at a time
  std::array<at::Tensor, 2> pinned_;  // one is filled while the other is emptied
};

}  // namespace tj::trainer
