// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it: pre-norm, tanh GELU,
// tied head.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/models/block_hooks.h"
#include "trainer/models/gpt2_config.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// How the passes are computed. The weights are float32, unless they are kept elsewhere.
struct Gpt2Compute {
  Precision precision = Precision::fp32;  // of matrix products and attention
  double dropout = 0;                     // of embeddings and of both branches of each layer
  std::uint64_t seed = 0;                 // of the dropout
  bool recompute = false;  // keep a layer's input alone, and run it again in backward
  std::optional<std::int64_t> ignored_token;  // as a target it doesn't count
  std::optional<int> gpu;  // CUDA's index of the device that holds the weights; absent: the CPU
};

/// Where the weights are when they are not simply the model's own.
struct Gpt2Keeper {
  /// Takes the initial value of tensor `index`, and returns the parameter to compute with: of its
  /// shape, float32 or the precision of the passes.
  std::function<at::Tensor(std::size_t index, const at::Tensor& initial)> place;
  BlockHooks* hooks = nullptr;  // of gpt2_blocks(); outlives the model
};

class Gpt2 {
 public:
  /// Initial weights are a function of the seed (GPT-2 paper, section 2.3; std 0.02).
  Gpt2(const Gpt2Config& config, std::uint64_t seed, const Gpt2Compute& compute = {},
       const Gpt2Keeper& keeper = {});
  ~Gpt2();
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// Sum of the cross entropies of all targets in `ids` [samples, context + 1], of any integer
  /// type: a scalar with a gradient. `first_sample`: the global number of the first row; without it
  /// nothing is dropped.
  at::Tensor loss_sum(const at::Tensor& ids, std::optional<std::int64_t> first_sample = {}) const;
  /// Targets in `tokens` that count.
  std::int64_t target_count(const at::Tensor& tokens) const;
  /// [samples, tokens, vocabulary] for `tokens` [samples, tokens].
  at::Tensor logits(const at::Tensor& tokens) const;

  /// In the order of gpt2_tensors().
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }

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
  Gpt2Compute compute_;
  BlockHooks* hooks_;  // null: there are none
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
