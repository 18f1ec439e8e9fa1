// The state of all ranks, put together from their parts.
#pragma once
#include <torch/types.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/checkpoint/training_state.h"

namespace tj::trainer {

using Tensors = std::map<std::string, at::Tensor>;

/// Puts this rank's part of each tensor where it belongs, flat. Any thread.
inline void collect(const std::vector<NamedTensor>& tensors, const std::string& prefix, int rank,
                    Tensors& wholes) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const auto& named : tensors) {
    const auto size = element_count(named.shape);
    auto& whole = wholes.try_emplace(prefix + named.name, torch::zeros({size})).first->second;
    if (!named.tensor.defined()) continue;
    const auto own = named.tensor.detach().reshape({-1});
    const auto part =
        named.parts.empty() ? ElementRange{0, size} : named.parts[static_cast<std::size_t>(rank)];
    whole.narrow(0, part.begin, part.size()).copy_(own);
  }
}

}  // namespace tj::trainer
