#include "trainer/train/tensor_windows.h"

#include <torch/types.h>

namespace tj::trainer {

TensorWindows windows_like(const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(!tensors.empty(), "a model trains something");
  std::int64_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.numel();
  TensorWindows result{
      .row = torch::zeros({elements}, tensors.front().options().requires_grad(false)),
      .windows = {}};
  std::int64_t begin = 0;
  for (const auto& tensor : tensors) {
    result.windows.push_back(result.row.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
  return result;
}

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  const at::NoGradGuard no_gradients;
  TORCH_CHECK(from.size() == to.size(), "one for each");
  for (std::size_t index = 0; index < from.size(); ++index)
    to[index].detach().copy_(from[index].detach());
}

}  // namespace tj::trainer
