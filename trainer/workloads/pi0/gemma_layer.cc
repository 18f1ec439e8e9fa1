#include "trainer/workloads/pi0/gemma_layer.h"

#include <torch/types.h>

#include "contract/result.h"

namespace tj::trainer {
namespace {

constexpr double kNormEps = 1e-6;

// Behind the first norm, of which `n` tensors are: q, k, v, o, the other norm, then the MLP.
constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2, kOutput = 3, kSecondNorm = 4;
constexpr std::size_t kGate = 4, kUp = 5, kDown = 6;  // behind both

at::Tensor added(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate) {
  const auto branch_in_full = branch.to(at::kFloat);
  return x + (gate.defined() ? branch_in_full * gate : branch_in_full);
}

}  // namespace

Normed gemma_norm(const at::Tensor& x, at::TensorList tensors, const at::Tensor& condition) {
  const auto in_full = x.to(at::kFloat);
  if (tensors.size() == 1)
    return {.x = at::rms_norm(in_full, {x.size(-1)}, 1 + tensors[0].to(at::kFloat), kNormEps),
            .gate = {}};
  const auto parts =
      at::linear(condition, tensors[0], tensors[1]).to(at::kFloat).unsqueeze(1).chunk(3, -1);
  const auto normed = at::rms_norm(in_full, {x.size(-1)}, {}, kNormEps);
  return {.x = normed * (1 + parts[0]) + parts[1], .gate = parts[2]};
}

GemmaLayer::GemmaLayer(at::TensorList tensors, const HeadShape& heads, const at::Tensor& condition)
    : tensors_(tensors),
      heads_(heads),
      condition_(condition),
      norm_tensors_(tensors.size() == kTensorsOfAdaptiveLayer ? 2 : 1) {
  TJ_CHECK(tensors.size() == kTensorsOfGemmaLayer + 2 * (norm_tensors_ - 1),
           "the tensors of one layer");
}

at::TensorList GemmaLayer::of_norm(std::size_t first) const {
  return tensors_.slice(first, norm_tensors_);
}

GemmaLayer::Projected GemmaLayer::projected(const at::Tensor& x, const Rotation& rotation,
                                            Wants wants) const {
  const auto normed = gemma_norm(x, of_norm(0), condition_);
  const auto by_head = [&](std::size_t place) {
    return at::linear(normed.x, tensors_[norm_tensors_ + place])
        .view({x.size(0), x.size(1), -1, heads_.width})
        .transpose(1, 2);
  };
  return {.q = wants == Wants::all ? rotated(by_head(kQuery), rotation) : at::Tensor{},
          .k = rotated(by_head(kKey), rotation),
          .v = by_head(kValue),
          .gate = normed.gate};
}

at::Tensor GemmaLayer::finished(const at::Tensor& x, const at::Tensor& mixed,
                                const at::Tensor& gate) const {
  const auto flat = mixed.transpose(1, 2).reshape({x.size(0), x.size(1), -1});
  const auto attended = added(x, at::linear(flat, tensors_[norm_tensors_ + kOutput]), gate);
  const auto normed = gemma_norm(attended, of_norm(norm_tensors_ + kSecondNorm), condition_);
  const auto mlp = tensors_.slice(2 * norm_tensors_);
  const auto hidden =
      at::gelu(at::linear(normed.x, mlp[kGate]), "tanh") * at::linear(normed.x, mlp[kUp]);
  return added(attended, at::linear(hidden, mlp[kDown]), normed.gate);
}

}  // namespace tj::trainer
