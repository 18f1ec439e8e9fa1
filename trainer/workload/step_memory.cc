#include "trainer/workload/step_memory.h"

#include <torch/types.h>

#include <algorithm>

namespace tj::trainer {

StepMemory::StepMemory(const MemorySpec& spec, at::Device device)
    : spec_(spec),
      rows_(torch::zeros({spec.rows, spec.row_bytes},
                         at::TensorOptions().dtype(at::kByte).device(device))) {}

std::int64_t StepMemory::filled() const { return std::min(appended_, spec_.rows); }

void StepMemory::append(const at::Tensor& rows) {
  TORCH_CHECK(rows.scalar_type() == at::kByte && rows.dim() == 2 && rows.size(1) == spec_.row_bytes,
              "rows of a memory are uint8 [any number, ", spec_.row_bytes, "]");
  const at::NoGradGuard no_gradients;
  const auto count = rows.size(0);
  // Of more than there is room for only the last ones stay.
  for (auto row = std::max<std::int64_t>(0, count - spec_.rows); row < count;) {
    const auto slot = (appended_ + row) % spec_.rows;
    const auto fitting = std::min(count - row, spec_.rows - slot);
    rows_.narrow(0, slot, fitting).copy_(rows.narrow(0, row, fitting));
    row += fitting;
  }
  appended_ += count;
}

}  // namespace tj::trainer
