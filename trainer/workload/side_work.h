// Work that a GPU does in a stream of its own, beside what it trains; on the CPU it is done at
// once. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <optional>
#include <vector>

namespace tj::trainer {

class SideWork {
 public:
  explicit SideWork(c10::Device device);

  struct Begun {
    std::vector<at::Tensor> made = {};    // on a GPU not there yet
    std::optional<c10::Event> done = {};  // absent: it is there
  };
  /// Begins `work`, behind what this thread's stream has by now. `inputs`: what it reads of that.
  Begun begin(at::TensorList inputs, const std::function<std::vector<at::Tensor>()>& work) const;
  /// What was made, for this thread's stream, which waits for it; the host does not.
  std::vector<at::Tensor> take(Begun begun) const;

 private:
  c10::Device device_;
  std::optional<c10::Stream> stream_;  // absent: the CPU
};

}  // namespace tj::trainer
