// What a compressed reduction remembers from step to step: of each parameter what this rank still
// owes to the sum over all ranks (its error), and PowerSGD's right factor, which is the same on
// all. On the host in any case. It is part of the training's state: checkpoints hold it. Includes
// torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/comm/reduce_options.h"

namespace tj::trainer {

class ReduceMemory {
 public:
  struct Entry {
    std::string name;
    std::size_t index = 0;
    at::Tensor
        error;  // flat float32, in the order of the parameter's memory; undefined: no feedback
    at::Tensor factor;  // PowerSGD's Q, [rank, columns]; undefined: the tensor is sent as it is
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::uint64_t seed = 0;  // of the factor's first values
  };

  /// Begins with no errors. `parameters` are contiguous in memory, in whatever order of dimensions.
  ReduceMemory(const std::vector<at::Tensor>& parameters, std::span<const std::string> names,
               const ReduceOptions& options);

  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  Entry& of(const at::Tensor& parameter);

  /// The steps that were reduced, or made otherwise, since the training began.
  std::int64_t steps = 0;
  /// The run has given its codec up, and reduces exactly. The same on all ranks.
  bool is_exact = false;
  /// A single rank owes what several have left it.
  bool is_to_be_paid = false;

  /// The gradients' scale has changed by this factor, and so has that of the errors.
  void rescale(double factor);
  /// A single rank sends nothing: what it owes it adds to the gradients of `parameters`.
  void pay(const std::vector<at::Tensor>& parameters);
  std::int64_t held_bytes() const;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<const at::TensorImpl*, std::size_t> index_;
};

}  // namespace tj::trainer
