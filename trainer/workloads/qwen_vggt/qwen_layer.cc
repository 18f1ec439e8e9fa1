#include "trainer/workloads/qwen_vggt/qwen_layer.h"

#include <torch/types.h>

#include "contract/result.h"
#include "trainer/workload/attention.h"

namespace tj::trainer {
namespace {

// Places of a layer's tensors.
constexpr std::size_t kNorm = 0, kQuery = 1, kKey = 3, kValue = 5, kOutput = 7, kSecondNorm = 8;
constexpr std::size_t kGate = 9, kUp = 10, kDown = 11;

/// [B, key-value heads, T, head] -> [B, heads, T, head]: each serves as many as stand together.
at::Tensor for_queries(const at::Tensor& x, const QwenText& text) {
  const auto served = text.heads / text.key_value_heads;
  return x.unsqueeze(2).expand({-1, -1, served, -1, -1}).flatten(1, 2);
}

}  // namespace

at::Tensor qwen_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return at::rms_norm(x, {x.size(-1)}, weight.to(at::kFloat), eps);
}

namespace {

/// Of one layer, [B, heads, T, head] each; those of keys and values are fewer.
struct Projected {
  at::Tensor q, k, v;
};

Projected projected(const at::Tensor& x, at::TensorList tensors, const QwenText& text,
                    const Turns& turns) {
  TJ_CHECK(tensors.size() == kTensorsOfQwenLayer, "the tensors of one layer");
  const auto normed = qwen_norm(x, tensors[kNorm], text.norm_eps);
  const auto by_head = [&](std::size_t place) {
    return at::linear(normed, tensors[place], tensors[place + 1])
        .unflatten(-1, {-1, text.head_width()})
        .transpose(1, 2);
  };
  return {
      .q = turned(by_head(kQuery), turns), .k = turned(by_head(kKey), turns), .v = by_head(kValue)};
}

/// [B, heads, T, head] -> [B, T, width]
at::Tensor joined(const at::Tensor& mixed) { return mixed.transpose(1, 2).flatten(2); }

/// [B, T, width] -> [rows, width]
at::Tensor chosen(const at::Tensor& x, const at::Tensor& rows) {
  return x.flatten(0, 1).index_select(0, rows);
}

/// What follows attention is of each token by itself: of those in x and `mixed`.
at::Tensor finished(const at::Tensor& x, const at::Tensor& mixed, at::TensorList tensors,
                    const QwenText& text) {
  const auto attended = x + at::linear(mixed, tensors[kOutput]).to(at::kFloat);
  const auto inside = qwen_norm(attended, tensors[kSecondNorm], text.norm_eps);
  const auto hidden =
      at::silu(at::linear(inside, tensors[kGate])) * at::linear(inside, tensors[kUp]);
  return attended + at::linear(hidden, tensors[kDown]).to(at::kFloat);
}

at::Tensor attended(const at::Tensor& x, at::TensorList tensors, const QwenText& text,
                    const Turns& turns) {
  const auto own = projected(x, tensors, text, turns);
  return joined(causal_attention(own.q, for_queries(own.k, text), for_queries(own.v, text)));
}

}  // namespace

at::Tensor qwen_layer(const at::Tensor& x, at::TensorList tensors, const QwenText& text,
                      const Turns& turns) {
  return finished(x, attended(x, tensors, text, turns), tensors, text);
}

at::Tensor qwen_layer_of(const at::Tensor& rows, const at::Tensor& x, at::TensorList tensors,
                         const QwenText& text, const Turns& turns) {
  const auto mixed = attended(x, tensors, text, turns);
  return finished(chosen(x, rows), chosen(mixed, rows), tensors, text);
}

at::Tensor qwen_layer_after(QwenSeen& seen, const at::Tensor& x, at::TensorList tensors,
                            const QwenText& text, const Turns& turns) {
  const auto own = projected(x, tensors, text, turns);
  const bool is_first = !seen.k.defined();
  TJ_CHECK(is_first || x.size(1) == 1, "one token goes on");
  seen.k = is_first ? own.k : at::cat({seen.k, own.k}, 2);
  seen.v = is_first ? own.v : at::cat({seen.v, own.v}, 2);
  const auto k = for_queries(seen.k, text), v = for_queries(seen.v, text);
  const auto mixed = is_first ? causal_attention(own.q, k, v) : masked_attention(own.q, k, v);
  return finished(x, joined(mixed), tensors, text);
}

}  // namespace tj::trainer
