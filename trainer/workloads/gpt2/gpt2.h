// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it: pre-norm, tanh GELU,
// tied head.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workloads/gpt2/gpt2_config.h"

namespace tj::trainer {

/// What of the training is GPT-2's own.
struct Gpt2Training {
  double dropout = 0;                         // of embeddings and of both branches of each layer
  std::optional<std::int64_t> ignored_token;  // as a target it doesn't count
};

class Gpt2 final : public Model {
 public:
  /// Initial weights are a function of the seed (GPT-2 paper, section 2.3; std 0.02).
  Gpt2(const Gpt2Config& config, const Gpt2Training& training, const ModelOptions& options,
       const ModelKeeper& keeper = {});
  ~Gpt2() override;
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// The cross entropies of all targets in the batch's only tensor, ids [samples, context + 1] of
  /// any integer type. Without `first_sample` nothing is dropped.
  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override;
  /// [samples, tokens, vocabulary] for `tokens` [samples, tokens].
  at::Tensor logits(const at::Tensor& tokens) const;

  const std::vector<at::Tensor>& tensors() const override { return parameters_; }

 private:
  struct Recomputed;
  /// [samples, tokens, width] after the last layer.
  at::Tensor trunk(const at::Tensor& inputs_BT, std::optional<std::int64_t> first_sample) const;
  at::Tensor embedded(const at::Tensor& inputs_BT, std::optional<std::int64_t> first_sample) const;
  at::Tensor last_norm(const at::Tensor& x_BTC) const;
  at::Tensor head_loss(const at::Tensor& x_BTC, const at::Tensor& targets) const;
  at::Tensor layer(const at::Tensor& x_BTC, std::int64_t index,
                   std::optional<std::int64_t> first_sample) const;
  at::Tensor dropped(const at::Tensor& x_BTC, std::uint32_t stream,
                     std::optional<std::int64_t> first_sample) const;

  Gpt2Config config_;
  Gpt2Training training_;
  ModelOptions options_;
  BlockHooks* hooks_;  // null: there are none
  std::vector<at::Tensor> parameters_;
  at::ScalarType residual_type_;  // of the residual stream
};

}  // namespace tj::trainer
