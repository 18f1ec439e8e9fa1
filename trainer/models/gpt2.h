// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it: pre-norm, tanh GELU,
// tied head.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/models/gpt2_config.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// How the passes are computed. The weights are float32 in any case.
struct Gpt2Compute {
  Precision precision = Precision::fp32;  // of matrix products and attention
  double dropout = 0;                     // of embeddings and of both branches of each layer
  std::uint64_t seed = 0;                 // of the dropout
  bool recompute = false;  // keep a layer's input alone, and run it again in backward
  std::optional<std::int64_t> ignored_token;  // as a target it doesn't count
  std::optional<int> gpu;  // CUDA's index of the device that holds the weights; absent: the CPU
};

class Gpt2 {
 public:
  /// Initial weights are a function of the seed (GPT-2 paper, section 2.3; std 0.02).
  Gpt2(const Gpt2Config& config, std::uint64_t seed, const Gpt2Compute& compute = {});
  ~Gpt2();
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// Sum of the cross entropies of all targets in `tokens` [samples, context + 1]: a scalar with a
  /// gradient. `first_sample`: the global number of the first row; without it nothing is dropped.
  at::Tensor loss_sum(const at::Tensor& tokens,
                      std::optional<std::int64_t> first_sample = {}) const;
  /// Targets in `tokens` that count.
  std::int64_t target_count(const at::Tensor& tokens) const;
  /// [samples, tokens, vocabulary] for `tokens` [samples, tokens].
  at::Tensor logits(const at::Tensor& tokens) const;

  /// In the order of gpt2_tensors().
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Recomputed;
  /// [samples, tokens, width] after the last norm.
  at::Tensor trunk(const at::Tensor& inputs_BT, std::optional<std::int64_t> first_sample) const;
  at::Tensor layer(const at::Tensor& x_BTC, std::int64_t index,
                   std::optional<std::int64_t> first_sample) const;
  at::Tensor dropped(const at::Tensor& x_BTC, std::uint32_t stream,
                     std::optional<std::int64_t> first_sample) const;

  Gpt2Config config_;
  Gpt2Compute compute_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
