#include "trainer/workloads/pi0/siglip.h"

#include <torch/types.h>

#include "contract/result.h"
#include "trainer/workload/attention.h"

namespace tj::trainer {
namespace {

constexpr double kNormEps = 1e-6;

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight.to(at::kFloat), bias.to(at::kFloat), kNormEps);
}

}  // namespace

/// A product of matrices in place of a convolution: its gradient adds in one order on a GPU, too.
at::Tensor siglip_patches(const at::Tensor& images, at::TensorList tensors) {
  const auto &weight = tensors[0], &bias = tensors[1], &positions = tensors[2];
  const auto side = weight.size(2), rows = images.size(2) / side, columns = images.size(3) / side;
  const auto patches = images.reshape({images.size(0), images.size(1), rows, side, columns, side})
                           .permute({0, 2, 4, 1, 3, 5})
                           .reshape({images.size(0), rows * columns, images.size(1) * side * side});
  const auto x_NTC = at::linear(patches, weight.view({weight.size(0), -1}), bias);
  return x_NTC.to(at::kFloat) + positions.to(at::kFloat);
}

at::Tensor siglip_layer(const at::Tensor& x_NTC, at::TensorList tensors, std::int64_t heads) {
  TJ_CHECK(tensors.size() == kTensorsOfVisionLayer, "the tensors of one layer");
  const auto linear = [&](const at::Tensor& x, std::size_t first) {
    return at::linear(x, tensors[first], tensors[first + 1]);
  };
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({t.size(0), t.size(1), heads, -1}).transpose(1, 2);
  };
  const auto normed = layer_norm(x_NTC, tensors[0], tensors[1]);
  const auto mixed = masked_attention(by_head(linear(normed, 2)), by_head(linear(normed, 4)),
                                      by_head(linear(normed, 6)));
  const auto attended_NTC =
      x_NTC + linear(mixed.transpose(1, 2).reshape(x_NTC.sizes()), 8).to(at::kFloat);
  const auto hidden =
      at::gelu(linear(layer_norm(attended_NTC, tensors[10], tensors[11]), 12), "tanh");
  return attended_NTC + linear(hidden, 14).to(at::kFloat);
}

at::Tensor siglip_projected(const at::Tensor& x_NTC, at::TensorList tensors) {
  return at::linear(layer_norm(x_NTC, tensors[0], tensors[1]), tensors[2], tensors[3])
      .to(at::kFloat);
}

}  // namespace tj::trainer
