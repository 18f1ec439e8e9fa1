// Shapes: B samples, T tokens, C width, H heads, V vocabulary.
#include "trainer/workloads/gpt2/gpt2.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "contract/result.h"
#include "trainer/workload/attention.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/bias_gradient.h"
#include "trainer/workload/draws.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/residual_norm.h"
#include "trainer/workloads/gpt2/biased_gelu.h"
#include "trainer/workloads/gpt2/gelu_kernel.h"
#include "trainer/workloads/gpt2/head_loss.h"

namespace tj::trainer {
namespace {

constexpr double kNormEps = 1e-5;

/// x [B, T, in] times weight [in, out] plus bias: Hugging Face's Conv1D.
at::Tensor conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto rows = x.reshape({-1, x.size(-1)});
  return at::addmm(bias, rows, weight).view({x.size(0), x.size(1), weight.size(1)});
}

/// The same; on a GPU a kernel sums the gradient of bias.
at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  auto* const kernels = bias_kernels(x, bias.size(0));
  if (kernels == nullptr) return conv1d(x, weight, bias);
  return with_bias_gradient(*kernels, conv1d(x, weight, bias.detach()), bias);
}

/// Queries, keys and values [B, T, C], which are one product.
std::array<at::Tensor, 3> attention_inputs(const at::Tensor& x, const at::Tensor& weight,
                                           const at::Tensor& bias) {
  const auto width = bias.size(0) / 3;
  if (auto* const kernels = bias_kernels(x, width))
    return thirds_with_bias_gradient(*kernels, conv1d(x, weight, bias.detach()), bias);
  const auto parts = conv1d(x, weight, bias).split(width, 2);
  return {parts[0], parts[1], parts[2]};
}

/// GELU of float32 by our own kernel, which is three times as fast as torch's.
struct GeluTanh : torch::autograd::Function<GeluTanh> {
  static constexpr std::int64_t kGrain = 16384;  // elements for which a thread is worth its start

  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const auto input = x.contiguous();
    auto y = at::empty_like(input);
    at::parallel_for(0, y.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      gelu_tanh(input.data_ptr<float>() + begin, y.data_ptr<float>() + begin, end - begin);
    });
    context->save_for_backward({input});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto x = context->get_saved_variables()[0];
    const auto dy = gradients[0].contiguous();
    auto dx = at::empty_like(x);
    at::parallel_for(0, dx.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      gelu_tanh_backward(x.data_ptr<float>() + begin, dy.data_ptr<float>() + begin,
                         dx.data_ptr<float>() + begin, end - begin);
    });
    return {dx};
  }
};

at::Tensor gelu_of(const at::Tensor& x, Gelu form) {
  if (form == Gelu::erf) return at::gelu(x, "none");
  const bool has_kernel = x.device().is_cpu() && x.scalar_type() == at::kFloat;
  return has_kernel ? GeluTanh::apply(x) : at::gelu(x, "tanh");
}

at::Tensor gelu_of_projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             Gelu form) {
  auto* const kernels = form == Gelu::tanh ? gelu_kernels(bias_kernels(x, bias.size(0))) : nullptr;
  if (kernels == nullptr) return gelu_of(projected(x, weight, bias), form);
  return biased_gelu(*kernels, conv1d(x, weight, bias.detach()), bias);
}

/// Keys or values of the tokens from `first` on join those that `kept` has; all of them.
at::Tensor joined(at::Tensor& kept, const at::Tensor& more, std::int64_t first,
                  std::int64_t context) {
  const auto count = more.size(2);
  if (!kept.defined())
    kept = at::empty({more.size(0), more.size(1), context, more.size(3)}, more.options());
  kept.narrow(2, first, count).copy_(more);
  return kept.narrow(2, 0, first + count);
}

/// Of tokens that others precede: the i-th sees those and itself.
at::Tensor attention_to_earlier(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto earlier = k.size(2) - q.size(2);
  if (q.size(2) == 1) return at::scaled_dot_product_attention(q, k, v);
  const auto sees =
      at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril(/*diagonal=*/earlier);
  return at::scaled_dot_product_attention(q, k, v, sees);
}

constexpr std::int64_t kNoTarget = -100;  // torch's own choice

// Streams of the counter-based random numbers: one for each place that drops.
constexpr std::uint32_t kEmbeddingStream = 0;
std::uint32_t attention_stream(std::int64_t layer) {
  return 1 + 2 * static_cast<std::uint32_t>(layer);
}
std::uint32_t mlp_stream(std::int64_t layer) { return 2 + 2 * static_cast<std::uint32_t>(layer); }

}  // namespace

/// A layer of which only the input is kept: backward runs it again (Chen et al. 2016: Training deep
/// nets with sublinear memory cost). The parameters are inputs too, so that their gradients go the
/// ordinary way.
struct Gpt2::Recomputed : torch::autograd::Function<Gpt2::Recomputed> {
  using Context = torch::autograd::AutogradContext;
  static constexpr std::size_t kInputsBefore = 3;  // model, layer, first_sample
  static constexpr std::int64_t kNoSample = -1;

  static at::Tensor forward(Context* context, const Gpt2* model, std::int64_t index,
                            std::int64_t first_sample, const at::Tensor& x,
                            at::TensorList parameters) {
    context->saved_data["model"] = reinterpret_cast<std::int64_t>(model);  // outlives the graph
    context->saved_data["layer"] = index;
    context->saved_data["sample"] = first_sample;
    std::vector<at::Tensor> kept{x};
    kept.insert(kept.end(), parameters.begin(), parameters.end());
    context->save_for_backward(kept);
    return model->layer(x, index, sample_of(first_sample));
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const auto* model = reinterpret_cast<const Gpt2*>(context->saved_data["model"].toInt());
    auto inputs = context->get_saved_variables();
    inputs[0] = inputs[0].detach().requires_grad_(true);
    std::vector<at::Tensor> wanted;  // without those that are frozen
    std::ranges::copy_if(inputs, std::back_inserter(wanted), &at::Tensor::requires_grad);
    const at::AutoGradMode with_gradients(true);
    const Autocast autocast(model->options_.precision, inputs[0].device().type());
    const auto again = model->layer(inputs[0], context->saved_data["layer"].toInt(),
                                    sample_of(context->saved_data["sample"].toInt()));
    const auto made = torch::autograd::grad({again}, wanted, {gradients[0]});
    torch::autograd::variable_list result(kInputsBefore);
    for (auto next = made.begin(); const auto& input : inputs)
      result.push_back(input.requires_grad() ? *next++ : at::Tensor());
    return result;
  }

  static std::optional<std::int64_t> sample_of(std::int64_t number) {
    return number == kNoSample ? std::nullopt : std::optional(number);
  }
};

Gpt2::Gpt2(const Gpt2Config& config, const Gpt2Training& training, const ModelOptions& options,
           const ModelKeeper& keeper)
    : config_(config),
      training_(training),
      options_(options),
      hooks_(keeper.hooks),
      parameters_(initial_tensors(gpt2_tensors(config), options, keeper)),
      residual_type_(residual_type(options.precision, device_of(options.gpu), config.width)) {}

Gpt2::Gpt2(std::vector<at::Tensor> weights, const Gpt2Config& config, const ModelOptions& options)
    : config_(config),
      options_(options),
      hooks_(nullptr),
      parameters_(std::move(weights)),
      residual_type_(residual_type(options.precision, device_of(options.gpu), config.width)) {}

Gpt2::~Gpt2() = default;

at::Tensor Gpt2::dropped(const at::Tensor& x_BTC, std::uint32_t stream,
                         std::optional<std::int64_t> first_sample) const {
  if (training_.dropout == 0 || !first_sample) return x_BTC;
  const auto mask =
      draw_keep_mask({.seed = options_.seed, .purpose = stream, .first_sample = *first_sample},
                     1.0 - training_.dropout, x_BTC.sizes(), x_BTC.device());
  return x_BTC * mask.to(x_BTC.options());
}

at::Tensor Gpt2::layer(const at::Tensor& x_BTC, std::int64_t index,
                       std::optional<std::int64_t> first_sample) const {
  return layer_with(causal_attention_of_one_shape, x_BTC, index, first_sample);
}

at::Tensor Gpt2::layer_with(const Attend& attend, const at::Tensor& x_BTC, std::int64_t index,
                            std::optional<std::int64_t> first_sample) const {
  const auto first = kTensorsBeforeLayers + static_cast<std::size_t>(index) * kTensorsOfLayer;
  const auto p = [&](std::size_t i) -> const at::Tensor& { return parameters_[first + i]; };
  const auto samples = x_BTC.size(0);
  const auto tokens = x_BTC.size(1);
  const auto width = config_.width;
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({samples, tokens, config_.heads, width / config_.heads}).transpose(1, 2);
  };
  const auto entering = residual_norm(x_BTC, p(0), p(1), kNormEps);
  const auto [q, k, v] = attention_inputs(entering.normed, p(2), p(3));
  const auto mixed_BHTc = attend(by_head(q), by_head(k), by_head(v));
  const auto mixed_BTC = mixed_BHTc.transpose(1, 2).reshape({samples, tokens, width});
  const auto attended = residual_norm(
      entering.sum,
      dropped(projected(mixed_BTC, p(4), p(5)), attention_stream(index), first_sample), p(6), p(7),
      kNormEps);
  const auto hidden = gelu_of_projected(attended.normed, p(8), p(9), config_.gelu);
  return attended.sum + dropped(projected(hidden, p(10), p(11)), mlp_stream(index), first_sample);
}

at::Tensor Gpt2::embedded(const at::Tensor& inputs_BT, std::int64_t first_position,
                          std::optional<std::int64_t> first_sample) const {
  // As float32 before the lookup: so the gradient of a token that comes often is summed in it.
  const bool sums_gradients = at::GradMode::is_enabled();
  const auto wte_VC = sums_gradients ? parameters_[0].to(at::kFloat) : parameters_[0];
  const auto wpe_TC = parameters_[1].narrow(0, first_position, inputs_BT.size(1)).to(at::kFloat);
  const auto x_BTC = at::embedding(wte_VC, inputs_BT).to(at::kFloat) + wpe_TC;
  return dropped(x_BTC.to(residual_type_), kEmbeddingStream, first_sample);
}

at::Tensor Gpt2::trunk(const at::Tensor& inputs_BT,
                       std::optional<std::int64_t> first_sample) const {
  auto x_BTC = in_block(hooks_, 0, [&] { return embedded(inputs_BT, 0, first_sample); });
  for (std::int64_t index = 0; index < config_.layers; ++index) {
    x_BTC = in_block(hooks_, static_cast<std::size_t>(index) + 1, [&] {
      if (!options_.recompute || !at::GradMode::is_enabled())
        return layer(x_BTC, index, first_sample);
      const auto first = kTensorsBeforeLayers + static_cast<std::size_t>(index) * kTensorsOfLayer;
      return Recomputed::apply(this, index, first_sample.value_or(Recomputed::kNoSample), x_BTC,
                               at::TensorList(parameters_).slice(first, kTensorsOfLayer));
    });
  }
  return x_BTC;
}

at::Tensor Gpt2::last_norm(const at::Tensor& x_BTC) const {
  const auto last = parameters_.size() - 2;
  return residual_norm(x_BTC, parameters_[last], parameters_[last + 1], kNormEps).normed;
}

at::Tensor Gpt2::logits(const at::Tensor& tokens) const {
  const Autocast autocast(options_.precision, tokens.device().type());
  return at::matmul(last_norm(trunk(tokens, {})), parameters_[0].t());
}

at::Tensor Gpt2::next_logits(const at::Tensor& tokens, Gpt2Cache& cache) const {
  const Autocast autocast(options_.precision, tokens.device().type());
  TJ_CHECK(cache.tokens + tokens.size(1) <= config_.context, "they fit the context");
  cache.keys.resize(static_cast<std::size_t>(config_.layers));
  cache.values.resize(cache.keys.size());
  auto x_BTC = embedded(tokens, cache.tokens, {});
  for (std::int64_t index = 0; index < config_.layers; ++index) {
    const auto place = static_cast<std::size_t>(index);
    const Attend attend = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
      const auto all_k = joined(cache.keys[place], k, cache.tokens, config_.context);
      const auto all_v = joined(cache.values[place], v, cache.tokens, config_.context);
      return cache.tokens == 0 ? causal_attention(q, k, v) : attention_to_earlier(q, all_k, all_v);
    };
    x_BTC = layer_with(attend, x_BTC, index, {});
  }
  cache.tokens += tokens.size(1);
  const auto last_B1C = x_BTC.narrow(1, x_BTC.size(1) - 1, 1);
  return at::matmul(last_norm(last_B1C), parameters_[0].t()).squeeze(1);
}

at::Tensor Gpt2::head_loss(const at::Tensor& x_BTC, const at::Tensor& targets) const {
  const auto x_NC = last_norm(x_BTC).reshape({-1, config_.width});
  const auto ignored = training_.ignored_token.value_or(kNoTarget);
  if (options_.precision == Precision::fp32)
    return head_loss_sum(x_NC, parameters_[0], targets, ignored);
  // On a GPU the logits of a pass would be most of its memory. Not in float16: the gradient of the
  // logits needs the loss scale before it is rounded.
  if (options_.precision == Precision::bf16 && x_NC.is_cuda())
    return head_loss_sum(x_NC.to(at::kBFloat16), parameters_[0], targets, ignored);
  const auto logits = at::matmul(x_NC, parameters_[0].t());
  return at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Sum, ignored);
}

PassSums Gpt2::pass(const Batch& batch, std::optional<std::int64_t> first_sample) const {
  const auto tokens = batch.at(0).to(at::kLong);
  const auto context = tokens.size(1) - 1;
  const auto targets = tokens.narrow(1, 1, context).reshape({-1});
  const Autocast autocast(options_.precision, tokens.device().type());
  const auto x_BTC = trunk(tokens.narrow(1, 0, context), first_sample);
  const auto head = static_cast<std::size_t>(config_.layers) + 1;
  return {.loss = in_block(hooks_, head, [&] { return head_loss(x_BTC, targets); }), .metrics = {}};
}

}  // namespace tj::trainer
