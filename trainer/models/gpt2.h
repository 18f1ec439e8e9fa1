// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel computes it: pre-norm, tanh GELU,
// tied head.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/models/gpt2_config.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

class Gpt2 {
 public:
  /// Initial weights are a function of the seed (GPT-2 paper, section 2.3; std 0.02).
  Gpt2(const Gpt2Config& config, std::uint64_t seed);
  ~Gpt2();
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// Sum of the cross entropies of all targets in `tokens` [samples, context + 1]: a scalar with a
  /// gradient.
  at::Tensor loss_sum(const at::Tensor& tokens) const;

  /// In the order of gpt2_tensors().
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  at::Tensor layer(const at::Tensor& x_BTC, std::size_t first_parameter) const;

  Gpt2Config config_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
