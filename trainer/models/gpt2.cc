// Shapes: B samples, T tokens, C width, H heads, V vocabulary.
#include "trainer/models/gpt2.h"

#include <torch/torch.h>

#include <cmath>

namespace tj::trainer {
namespace {

constexpr double kInitStd = 0.02;
constexpr double kNormEps = 1e-5;
constexpr std::size_t kParametersBeforeLayers = 2;  // wte, wpe
constexpr std::size_t kParametersOfLayer = 12;

at::Tensor initial(const TensorSpec& spec, const Gpt2Config& config, at::Generator& generator) {
  using enum TensorRole;
  at::Tensor tensor = torch::zeros(spec.shape);
  // Each layer adds twice to the residual stream: its sum keeps its scale.
  const double residual_std = kInitStd / std::sqrt(2.0 * static_cast<double>(config.layers));
  switch (spec.role) {
    case norm_weight: tensor.fill_(1.0); break;
    case bias: break;
    case embedding:
    case matrix: tensor.normal_(0.0, kInitStd, generator); break;
    case residual_matrix: tensor.normal_(0.0, residual_std, generator); break;
  }
  return tensor.requires_grad_(true);
}

/// x [B, T, in] times weight [in, out] plus bias: Hugging Face's Conv1D.
at::Tensor conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto rows = x.reshape({-1, x.size(-1)});
  return at::addmm(bias, rows, weight).view({x.size(0), x.size(1), weight.size(1)});
}

}  // namespace

Gpt2::Gpt2(const Gpt2Config& config, std::uint64_t seed) : config_(config) {
  auto generator = at::detail::createCPUGenerator(seed);
  for (const auto& spec : gpt2_tensors(config)) {
    names_.push_back(spec.name);
    parameters_.push_back(initial(spec, config, generator));
  }
}

Gpt2::~Gpt2() = default;

at::Tensor Gpt2::layer(const at::Tensor& x_BTC, std::size_t first_parameter) const {
  const auto p = [&](std::size_t index) -> const at::Tensor& {
    return parameters_[first_parameter + index];
  };
  const auto samples = x_BTC.size(0);
  const auto tokens = x_BTC.size(1);
  const auto width = config_.width;
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({samples, tokens, config_.heads, width / config_.heads}).transpose(1, 2);
  };
  const auto normed = at::layer_norm(x_BTC, {width}, p(0), p(1), kNormEps);
  const auto qkv = conv1d(normed, p(2), p(3)).split(width, 2);
  const auto mixed_BHTc =
      at::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]), {},
                                       /*dropout_p=*/0.0, /*is_causal=*/true);
  const auto mixed_BTC = mixed_BHTc.transpose(1, 2).reshape({samples, tokens, width});
  const auto attended = x_BTC + conv1d(mixed_BTC, p(4), p(5));
  const auto hidden =
      at::gelu(conv1d(at::layer_norm(attended, {width}, p(6), p(7), kNormEps), p(8), p(9)), "tanh");
  return attended + conv1d(hidden, p(10), p(11));
}

at::Tensor Gpt2::loss_sum(const at::Tensor& tokens) const {
  const auto context = tokens.size(1) - 1;
  const auto inputs_BT = tokens.narrow(1, 0, context);
  const auto targets = tokens.narrow(1, 1, context).reshape({-1});
  const auto& wte_VC = parameters_[0];
  const auto& wpe_TC = parameters_[1];
  auto x_BTC = at::embedding(wte_VC, inputs_BT) + wpe_TC.narrow(0, 0, context);
  const auto layers = static_cast<std::size_t>(config_.layers);
  for (std::size_t index = 0; index < layers; ++index) {
    x_BTC = layer(x_BTC, kParametersBeforeLayers + index * kParametersOfLayer);
  }
  const auto final_norm = kParametersBeforeLayers + layers * kParametersOfLayer;
  x_BTC = at::layer_norm(x_BTC, {config_.width}, parameters_[final_norm],
                         parameters_[final_norm + 1], kNormEps);
  const auto logits = at::matmul(x_BTC.reshape({-1, config_.width}), wte_VC.t());
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

}  // namespace tj::trainer
