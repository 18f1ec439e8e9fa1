// Qwen2.5-VL (arXiv 2502.13923) as transformers computes it: pictures become tokens of the language
// tower, which takes them in place of their pads. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "trainer/workload/model_options.h"
#include "trainer/workloads/qwen_vggt/qwen_batch.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"
#include "trainer/workloads/qwen_vggt/qwen_layer.h"

namespace tj::trainer {

/// What the language tower has seen of conversations that go on.
struct QwenCache {
  std::vector<QwenSeen> layers;
};

class Qwen {
 public:
  /// Initial weights are a function of the seed.
  Qwen(const QwenConfig& config, const ModelOptions& options, const ModelKeeper& keeper = {});
  /// Of weights that are there, in the order of qwen_tensors(). `hooks`, of qwen_tensors().blocks,
  /// outlive it.
  Qwen(std::vector<at::Tensor> weights, const QwenConfig& config, const ModelOptions& options,
       BlockHooks* hooks = nullptr);

  /// The tokens of all pictures, float32 [M, width of the text]; undefined where there are none.
  at::Tensor pictures(const QwenBatch& batch) const;
  /// What the language tower makes of tokens and `pictures`, before its last norm: float32 [B, T,
  /// width]; with `rows` of these tokens of the B x T alone, [rows, width].
  at::Tensor hidden(const QwenBatch& batch, const at::Tensor& pictures,
                    const at::Tensor& rows = {}) const;

  /// float32 [B, T, vocabulary]; behind a sample's end without meaning.
  at::Tensor logits(const QwenBatch& batch) const;
  /// The sum of the cross entropies of all targets, of the text after `pictures`.
  at::Tensor loss(const QwenBatch& batch, const at::Tensor& pictures) const;
  at::Tensor loss(const QwenBatch& batch) const { return loss(batch, pictures(batch)); }
  /// The logits of the targets alone, float32 [N, vocabulary].
  at::Tensor judged(const QwenBatch& batch, const at::Tensor& pictures) const;

  /// The logits of what comes after the last token of each row, float32 [B, vocabulary]. Of an
  /// empty cache the rows are whole conversations of one length, else one token each that goes on
  /// with those of the cache. Without gradients.
  at::Tensor next(const QwenBatch& batch, const at::Tensor& pictures, QwenCache& cache) const;

  const QwenConfig& config() const { return config_; }
  const std::vector<at::Tensor>& tensors() const { return parameters_; }

 private:
  at::TensorList part(std::size_t first, std::size_t count) const;
  at::Tensor computed(const at::Tensor& x, at::TensorList tensors,
                      const std::function<at::Tensor(const at::Tensor&)>& compute) const;
  at::Tensor words(const at::Tensor& tokens) const;
  at::Tensor with_pictures(const QwenBatch& batch, const at::Tensor& pictures) const;
  at::Tensor said(const at::Tensor& hidden) const;

  QwenConfig config_;
  ModelOptions options_;
  BlockHooks* hooks_;  // null: there are none
  QwenTensors layout_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
