// An answer of a trained Qwen2.5-VL, token by token: the conversation is read once, and keys and
// values of what was seen stay. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/workloads/qwen_vggt/qwen_vggt.h"

namespace tj::trainer {

class Answer {
 public:
  /// `batch`: one open conversation, in the order of ConversationTensor.
  Answer(const QwenVggt& model, const QwenVggtConfig& config, const Batch& batch);

  /// The logits of what comes next, float32 [vocabulary] in the host's memory.
  at::Tensor logits() const { return logits_; }
  /// `token` is what came.
  void go_on(std::int64_t token);

  std::int64_t tokens() const { return tokens_; }  // of the conversation, before the answer

 private:
  const QwenVggt& model_;
  at::Device device_;
  QwenCache cache_;
  std::int64_t tokens_ = 0;
  std::int64_t position_ = 0;  // of the next token, on all axes
  at::Tensor logits_;
};

}  // namespace tj::trainer
