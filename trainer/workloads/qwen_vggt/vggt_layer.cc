#include "trainer/workloads/qwen_vggt/vggt_layer.h"

#include <torch/types.h>

#include <vector>

#include "contract/result.h"
#include "trainer/workload/attention.h"
#include "trainer/workloads/qwen_vggt/vggt_config.h"

namespace tj::trainer {
namespace {

constexpr double kRotaryBase = 100;

// Places of a layer's tensors; what comes behind qkv moves by `norms` (0 or 4).
constexpr std::size_t kNorm = 0, kQkv = 2, kQueryNorm = 4, kKeyNorm = 6;
constexpr std::size_t kProjection = 4, kScale = 6, kSecondNorm = 7, kUp = 9, kDown = 11;
constexpr std::size_t kSecondScale = 13;

at::Tensor normed(const at::Tensor& x, at::TensorList tensors, double eps) {
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, tensors[0].to(at::kFloat),
                        tensors[1].to(at::kFloat), eps);
}

at::Tensor linear(const at::Tensor& x, at::TensorList tensors) {
  return at::linear(x, tensors[0], tensors[1]);
}

at::Tensor scaled(const at::Tensor& branch, const at::Tensor& scale) {
  return branch.to(at::kFloat) * scale.to(at::kFloat);
}

/// x [B, heads, T, head]: each half of a head is turned by itself.
at::Tensor turned_by_halves(const at::Tensor& x, const Turns& turns) {
  if (!turns.cosine.defined()) return x;
  return turned(x.unflatten(-1, {2, -1}), turns).flatten(-2);
}

at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    std::int64_t tokens_of_frame) {
  const auto tokens = q.size(2);
  if (tokens_of_frame == 0 || tokens_of_frame == tokens) return masked_attention(q, k, v);
  std::vector<at::Tensor> frames;
  for (std::int64_t first = 0; first < tokens; first += tokens_of_frame) {
    const auto seen = first + tokens_of_frame;
    frames.push_back(masked_attention(q.narrow(2, first, tokens_of_frame), k.narrow(2, 0, seen),
                                      v.narrow(2, 0, seen)));
  }
  return at::cat(frames, 2);
}

}  // namespace

Turns vggt_turns(const at::Tensor& places, std::int64_t head_width) {
  // A plane's pairs are those of the rows, then those of the columns: here each has its own half.
  const auto turns = plane_turns(places, head_width, kRotaryBase);
  return {.cosine = turns.cosine.unflatten(-1, {2, -1}), .sine = turns.sine.unflatten(-1, {2, -1})};
}

at::Tensor vggt_layer(const at::Tensor& x, at::TensorList tensors, const VggtLayerRule& rule) {
  const bool has_norms = tensors.size() == kTensorsOfVggtLayer;
  TJ_CHECK(has_norms || tensors.size() == kTensorsOfDinoLayer, "the tensors of one layer");
  const std::size_t moved = has_norms ? kTensorsOfVggtLayer - kTensorsOfDinoLayer : 0;
  const auto behind = [&](std::size_t place) { return tensors.slice(place + moved); };
  const auto qkv = linear(normed(x, tensors.slice(kNorm), rule.norm_eps), tensors.slice(kQkv))
                       .unflatten(-1, {3, rule.heads, -1})
                       .permute({2, 0, 3, 1, 4})
                       .unbind(0);
  const auto by_place = [&](const at::Tensor& part, std::size_t norm) {
    if (!has_norms) return turned_by_halves(part, rule.turns);
    const auto inside = normed(part, tensors.slice(norm), rule.norm_eps).to(part.scalar_type());
    return turned_by_halves(inside, rule.turns);
  };
  const auto mixed = attended(by_place(qkv[0], kQueryNorm), by_place(qkv[1], kKeyNorm), qkv[2],
                              rule.tokens_of_frame);
  const auto flat = mixed.transpose(1, 2).flatten(2);
  const auto attended_x = x + scaled(linear(flat, behind(kProjection)), behind(kScale)[0]);
  const auto inside = normed(attended_x, behind(kSecondNorm), rule.norm_eps);
  const auto hidden = at::gelu(linear(inside, behind(kUp)));
  return attended_x + scaled(linear(hidden, behind(kDown)), behind(kSecondScale)[0]);
}

}  // namespace tj::trainer
