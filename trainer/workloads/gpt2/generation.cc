#include "trainer/workloads/gpt2/generation.h"

#include <torch/types.h>

#include <algorithm>

#include "contract/result.h"

namespace tj::trainer {

at::Tensor Generation::next(std::span<const std::int64_t> tokens) {
  TJ_CHECK(!tokens.empty(), "something to go on with");
  window_.insert(window_.end(), tokens.begin(), tokens.end());
  const auto all = static_cast<std::int64_t>(window_.size());
  auto fresh = static_cast<std::int64_t>(tokens.size());
  if (all > context_) {
    fresh = std::min(context_, std::max(context_ / 2, fresh));
    window_.erase(window_.begin(), window_.end() - fresh);
    cache_.tokens = 0;
  }
  const auto ids = torch::tensor(at::ArrayRef<std::int64_t>(window_.data(), window_.size()))
                       .narrow(0, static_cast<std::int64_t>(window_.size()) - fresh, fresh)
                       .unsqueeze(0);
  return model_.next_logits(ids.to(device_), cache_).squeeze(0).to(at::kCPU, at::kFloat);
}

}  // namespace tj::trainer
