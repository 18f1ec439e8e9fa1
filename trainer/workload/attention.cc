#include "trainer/workload/attention.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>

#include <optional>

namespace tj::trainer {
namespace {

/// Which keys a query sees.
struct Sees {
  bool is_causal = false;
  at::Tensor visible = {};  // undefined: all, unless it is causal

  std::optional<at::Tensor> mask() const {
    return visible.defined() ? std::optional(visible) : std::nullopt;
  }
};

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const Sees& sees) {
  return at::scaled_dot_product_attention(q, k, v, sees.mask(), /*dropout_p=*/0.0, sees.is_causal);
}

bool is_wanted_in_order = true;

/// cuDNN, the fastest on an H100, first or not at all: it takes long to prepare for a shape, and
/// its backward has no order that torch can ask for.
void prefer_cudnn(bool is_preferred) {
  using at::SDPBackend;
  auto& context = at::globalContext();
  if (context.userEnabledCuDNNSDP() == is_preferred) return;
  std::vector<std::int64_t> order;
  for (const auto backend : {SDPBackend::cudnn_attention, SDPBackend::flash_attention,
                             SDPBackend::efficient_attention, SDPBackend::math})
    order.push_back(static_cast<std::int64_t>(backend));
  context.setSDPPriorityOrder(order);
  context.setSDPUseCuDNN(is_preferred);
}

at::SDPBackend backend_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const Sees& sees) {
  return static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(q, k, v, sees.mask(), /*dropout_p=*/0.0, sees.is_causal));
}

/// As long as it lives, kernels add in one order. A switch of the whole process, and an error in
/// some operations that have no such order: so it is only on around attention.
class OneOrder {
 public:
  OneOrder() {
    context_.setDeterministicAlgorithms(true, /*warn_only=*/false);
    context_.setDeterministicFillUninitializedMemory(false);
  }
  ~OneOrder() {
    context_.setDeterministicAlgorithms(was_on_, only_warned_);
    context_.setDeterministicFillUninitializedMemory(filled_);
  }
  OneOrder(const OneOrder&) = delete;
  OneOrder& operator=(const OneOrder&) = delete;

 private:
  at::Context& context_ = at::globalContext();
  bool was_on_ = context_.deterministicAlgorithms();
  bool only_warned_ = context_.deterministicAlgorithmsWarnOnly();
  bool filled_ = context_.deterministicFillUninitializedMemory();
};

/// Keeps a graph of its own from the inputs to the output, and goes back through it under OneOrder.
struct InOrder : torch::autograd::Function<InOrder> {
  using Context = torch::autograd::AutogradContext;
  static constexpr std::size_t kInputs = 3;
  static constexpr std::size_t kArguments = 4;

  static at::Tensor forward(Context* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const Sees& sees) {
    const at::AutoGradMode with_gradients(true);
    std::vector<at::Tensor> kept;
    for (const auto& input : {q, k, v})
      kept.push_back(input.detach().requires_grad_(input.requires_grad()));
    kept.push_back(attention(kept[0], kept[1], kept[2], sees));
    const auto output = kept.back().detach();
    context->saved_data["kept"] = std::move(kept);
    return output;
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const auto kept = context->saved_data["kept"].toTensorVector();
    context->saved_data.clear();
    std::vector<at::Tensor> wanted;
    for (std::size_t i = 0; i < kInputs; ++i)
      if (kept[i].requires_grad()) wanted.push_back(kept[i]);
    const OneOrder one_order;
    auto made = torch::autograd::grad({kept.back()}, wanted, {gradients[0]});
    torch::autograd::variable_list result(kArguments);
    for (std::size_t i = kInputs; i-- > 0;) {
      if (!kept[i].requires_grad()) continue;
      result[i] = std::move(made.back());
      made.pop_back();
    }
    return result;
  }
};

at::Tensor attention_in_order(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Sees& sees) {
  return at::GradMode::is_enabled() ? InOrder::apply(q, k, v, sees) : attention(q, k, v, sees);
}

at::Tensor attention_as_wanted(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const Sees& sees, bool is_of_one_shape = false) {
  if (!q.is_cuda()) return attention(q, k, v, sees);  // has an order anyway
  prefer_cudnn(is_of_one_shape && !is_wanted_in_order);
  const bool may_lack_order =
      is_wanted_in_order && backend_of(q, k, v, sees) != at::SDPBackend::math;
  return may_lack_order ? attention_in_order(q, k, v, sees) : attention(q, k, v, sees);
}

std::string name_of(at::SDPBackend backend) {
  switch (backend) {
    case at::SDPBackend::math: return "math";
    case at::SDPBackend::flash_attention: return "flash";
    case at::SDPBackend::efficient_attention: return "memory-efficient";
    case at::SDPBackend::cudnn_attention: return "cuDNN";
    default: return "unknown";
  }
}

/// A head for each of q's.
at::Tensor for_heads(const at::Tensor& keys, const at::Tensor& q) {
  return keys.expand({keys.size(0), q.size(1), keys.size(2), keys.size(3)});
}

}  // namespace

void use_attention_in_order(bool is_in_order) { is_wanted_in_order = is_in_order; }

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return attention_as_wanted(q, k, v, {.is_causal = true});
}

at::Tensor causal_attention_of_one_shape(const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v) {
  return attention_as_wanted(q, k, v, {.is_causal = true}, /*is_of_one_shape=*/true);
}

at::Tensor causal_attention_in_order(const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v) {
  return attention_in_order(q, k, v, {.is_causal = true});
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& visible) {
  return attention_as_wanted(q, for_heads(k, q), for_heads(v, q), {.visible = visible});
}

at::Tensor masked_attention_in_order(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& visible) {
  return attention_in_order(q, for_heads(k, q), for_heads(v, q), {.visible = visible});
}

std::string attention_backend(at::Device device, at::ScalarType type) {
  const auto q = torch::zeros({1, 1, 128, 64}, at::TensorOptions().device(device).dtype(type))
                     .requires_grad_(true);
  const auto name_for = [&](bool is_of_one_shape) {
    if (!device.is_cpu()) prefer_cudnn(is_of_one_shape && !is_wanted_in_order);
    return name_of(backend_of(q, q, q, {.is_causal = true}));
  };
  const auto of_one_shape = name_for(true);
  const auto of_any = name_for(false);
  return of_one_shape == of_any ? of_any
                                : of_one_shape + " where all passes have one shape, else " + of_any;
}

}  // namespace tj::trainer
