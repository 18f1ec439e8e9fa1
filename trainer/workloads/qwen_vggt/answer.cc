#include "trainer/workloads/qwen_vggt/answer.h"

#include <torch/types.h>

#include "contract/result.h"

namespace tj::trainer {
namespace {

at::Tensor on_host(const at::Tensor& logits) {
  return logits.squeeze(0).to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace

Answer::Answer(const QwenVggt& model, const QwenVggtConfig& config, const Batch& batch)
    : model_(model), device_(batch.front().device()) {
  const at::NoGradGuard no_gradients;
  const auto made = conversation_batch(batch, config.qwen);
  TJ_CHECK(made.qwen.tokens.size(0) == 1, "one conversation");
  tokens_ = made.qwen.tokens.size(1);
  position_ = made.qwen.positions.max().item<std::int64_t>() + 1;
  logits_ = on_host(model_.qwen().next(made.qwen, model_.pictures(made), cache_));
}

void Answer::go_on(std::int64_t token) {
  const auto number = [&](std::int64_t value, at::IntArrayRef shape) {
    return at::full(shape, value, at::TensorOptions().dtype(at::kLong).device(device_));
  };
  QwenBatch next;
  next.tokens = number(token, {1, 1});
  next.positions = number(position_++, {3, 1, 1});
  logits_ = on_host(model_.qwen().next(next, {}, cache_));
}

}  // namespace tj::trainer
