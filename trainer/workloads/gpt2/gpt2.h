// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it: pre-norm, GELU in one
// of its forms, tied head.
#pragma once
#include <cstdint>
#include <functional>
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

/// What attention needs of the tokens so far, so that none is computed twice: for each layer keys
/// and values [samples, heads, context, width of a head], of which the first `tokens` are filled.
struct Gpt2Cache {
  std::vector<at::Tensor> keys, values;  // empty: nothing is filled
  std::int64_t tokens = 0;
};

class Gpt2 final : public Model {
 public:
  /// Initial weights are a function of the seed (GPT-2 paper, section 2.3; std 0.02).
  Gpt2(const Gpt2Config& config, const Gpt2Training& training, const ModelOptions& options,
       const ModelKeeper& keeper = {});
  /// Of weights that are there, in the order of gpt2_tensors(), for what comes after training.
  Gpt2(std::vector<at::Tensor> weights, const Gpt2Config& config, const ModelOptions& options);
  ~Gpt2() override;
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// The cross entropies of all targets in the batch's only tensor, ids [samples, context + 1] of
  /// any integer type. Without `first_sample` nothing is dropped.
  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override;
  /// [samples, tokens, vocabulary] for `tokens` [samples, tokens].
  at::Tensor logits(const at::Tensor& tokens) const;
  /// The same of the last token alone, [samples, vocabulary], where `tokens` [samples, n] follow
  /// those in `cache`, which they join. All of them together must fit the context.
  at::Tensor next_logits(const at::Tensor& tokens, Gpt2Cache& cache) const;

  const std::vector<at::Tensor>& tensors() const override { return parameters_; }

 private:
  struct Recomputed;
  /// Of queries, keys and values [samples, heads, tokens, width of a head] the mixed values.
  using Attend =
      std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;
  /// [samples, tokens, width] after the last layer.
  at::Tensor trunk(const at::Tensor& inputs_BT, std::optional<std::int64_t> first_sample) const;
  at::Tensor embedded(const at::Tensor& inputs_BT, std::int64_t first_position,
                      std::optional<std::int64_t> first_sample) const;
  at::Tensor last_norm(const at::Tensor& x_BTC) const;
  at::Tensor head_loss(const at::Tensor& x_BTC, const at::Tensor& targets) const;
  at::Tensor layer(const at::Tensor& x_BTC, std::int64_t index,
                   std::optional<std::int64_t> first_sample) const;
  at::Tensor layer_with(const Attend& attend, const at::Tensor& x_BTC, std::int64_t index,
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
