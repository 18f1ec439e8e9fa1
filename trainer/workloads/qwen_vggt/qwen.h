// Qwen2.5-VL (arXiv 2502.13923) as transformers computes it: pictures become tokens of the language
// tower, which takes them in place of their pads. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/workload/model_options.h"
#include "trainer/workloads/qwen_vggt/qwen_batch.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"

namespace tj::trainer {

class Qwen {
 public:
  /// Initial weights are a function of the seed.
  Qwen(const QwenConfig& config, const ModelOptions& options, const ModelKeeper& keeper = {});
  /// Of weights that are there, in the order of qwen_tensors().
  Qwen(std::vector<at::Tensor> weights, const QwenConfig& config, const ModelOptions& options);

  /// The tokens of all pictures, float32 [M, width of the text]; undefined where there are none.
  at::Tensor pictures(const QwenBatch& batch) const;
  /// What the language tower makes of tokens and `pictures`, before its last norm: float32 [B, T,
  /// width].
  at::Tensor hidden(const QwenBatch& batch, const at::Tensor& pictures) const;

  /// float32 [B, T, vocabulary]; behind a sample's end without meaning.
  at::Tensor logits(const QwenBatch& batch) const;
  /// The sum of the cross entropies of all targets, of the text after `pictures`.
  at::Tensor loss(const QwenBatch& batch, const at::Tensor& pictures) const;
  at::Tensor loss(const QwenBatch& batch) const { return loss(batch, pictures(batch)); }

  const QwenConfig& config() const { return config_; }
  const std::vector<at::Tensor>& tensors() const { return parameters_; }

 private:
  at::TensorList part(std::size_t first, std::size_t count) const;
  at::Tensor words(const at::Tensor& tokens) const;
  at::Tensor said(const at::Tensor& hidden) const;

  QwenConfig config_;
  ModelOptions options_;
  BlockHooks* hooks_;  // null: there are none
  QwenTensors layout_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
