// A text that a GPT-2 goes on with, token by token. Includes torch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/workloads/gpt2/gpt2.h"

namespace tj::trainer {

class Generation {
 public:
  /// The model outlives it.
  Generation(const Gpt2& model, const Gpt2Config& config, at::Device device)
      : model_(model), context_(config.context), device_(device) {}

  /// The logits [vocabulary], float32 in the host's memory, of what follows after `tokens`, one at
  /// least, which follow those that came before. Each is computed once, until the context is full:
  /// then its older half is dropped, and the younger one computed anew, since all positions change.
  /// Of more tokens at once than the context holds, the last ones count.
  at::Tensor next(std::span<const std::int64_t> tokens);

 private:
  const Gpt2& model_;
  std::int64_t context_;
  at::Device device_;
  std::vector<std::int64_t> window_;  // the tokens of the cache
  Gpt2Cache cache_;
};

}  // namespace tj::trainer
