// Several tensors in one row of memory: what is done to all of them at once is done to the row.
// Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace tj::trainer {

struct TensorWindows {
  at::Tensor row;                   // flat
  std::vector<at::Tensor> windows;  // on the row, one after another
};

/// Zeros in the shapes of `tensors`, which are of one type and device.
TensorWindows windows_like(const std::vector<at::Tensor>& tensors);

/// Into tensors of the same shapes.
void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);

}  // namespace tj::trainer
