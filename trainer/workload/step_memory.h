// What passes leave for those of later steps, such as earlier outputs of a generator: rows of
// bytes in a ring, the same on all ranks and on any number of them. Includes torch.
//
// A pass gives its rows in the order of its samples. After the step the engine gathers those of
// all ranks in the order of the samples, and writes them over the oldest ones. What a pass sees is
// therefore what earlier steps have left, whoever has computed it; checkpoints hold it.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "trainer/workload/memory_spec.h"

namespace tj::trainer {

class StepMemory {
 public:
  StepMemory(const MemorySpec& spec, at::Device device);

  const MemorySpec& spec() const { return spec_; }
  /// uint8 [rows, row_bytes]; those from filled() on hold nothing yet.
  const at::Tensor& rows() const { return rows_; }
  std::int64_t filled() const;

  /// uint8 [any number, row_bytes].
  void append(const at::Tensor& rows);

  /// How many rows were ever appended: with rows(), all that a checkpoint must hold.
  std::int64_t appended() const { return appended_; }
  void set_appended(std::int64_t appended) { appended_ = std::max<std::int64_t>(0, appended); }

 private:
  MemorySpec spec_;
  at::Tensor rows_;
  std::int64_t appended_ = 0;
};

}  // namespace tj::trainer
