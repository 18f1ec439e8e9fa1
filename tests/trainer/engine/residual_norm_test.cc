#include "trainer/workload/residual_norm.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "tests/trainer/engine/host_kernels.h"

namespace tj::trainer {
namespace host_gpu {

#define TJ_KERNELS(...) __VA_ARGS__
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/residual_norm.inc"

}  // namespace host_gpu

namespace {

constexpr double kEps = 1e-5;

host_gpu::HostKernels kernels_of_host() {
  using host_gpu::call_of;
  return host_gpu::HostKernels{
      {{"residual_norm_forward", call_of(host_gpu::residual_norm_forward)},
       {"residual_norm_backward", call_of(host_gpu::residual_norm_backward)}}};
}

struct Inputs {
  at::Tensor x, branch;     // bfloat16 [3, 25, width]
  at::Tensor weight, bias;  // float32 [width]
};

/// 75 rows: more than a block has, and no multiple.
Inputs inputs_of(std::int64_t width) {
  torch::manual_seed(7);
  const auto leaf = [](const at::Tensor& values) { return values.detach().requires_grad_(true); };
  const auto stream = [&] {
    return leaf((torch::randn({3, 25, width}) * 2 + 0.5).to(at::kBFloat16));
  };
  return {.x = stream(),
          .branch = stream(),
          .weight = leaf(torch::randn({width})),
          .bias = leaf(torch::randn({width}))};
}

/// Relative to the largest value, since single ones may cancel out.
double distance(const at::Tensor& one, const at::Tensor& other) {
  const auto scale = other.to(at::kFloat).abs().max();
  return ((one.to(at::kFloat) - other.to(at::kFloat)).abs().max() / scale).item<double>();
}

/// Both outputs have gradients that differ from element to element, and that bfloat16 holds.
std::vector<at::Tensor> gradients_of(const ResidualNorm& made, const std::vector<at::Tensor>& of) {
  const auto weights = torch::arange(made.normed.numel())
                           .view(made.normed.sizes())
                           .sin()
                           .to(at::kBFloat16)
                           .to(at::kFloat);
  const auto loss = (made.normed.to(at::kFloat) * weights).sum() +
                    (made.sum.to(at::kFloat) * weights.flip(0)).sum();
  return torch::autograd::grad({loss}, of);
}

/// bfloat16 has eight bits: a rounding is 2^-9 of the value, and of a gradient there are several.
constexpr double kRoundingMax = 1.0 / 128;

void expect_as_torch(const ResidualNorm& made, const ResidualNorm& expected,
                     const std::vector<at::Tensor>& leaves) {
  EXPECT_LT(distance(made.sum, expected.sum), kRoundingMax);
  EXPECT_LT(distance(made.normed, expected.normed), kRoundingMax);
  const auto gradients = gradients_of(made, leaves);
  const auto wanted = gradients_of(expected, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(gradients[i].scalar_type(), leaves[i].scalar_type());
    EXPECT_LT(distance(gradients[i], wanted[i]), kRoundingMax) << "gradient " << i;
  }
}

TEST(ResidualNorm, the_kernel_computes_what_torch_does) {
  auto kernels = kernels_of_host();
  // A thread of a warp's, more than a warp, and all of two.
  for (const std::int64_t width : {8, 520, 512}) {
    const auto in = inputs_of(width);
    const auto made = residual_norm_by_kernel(kernels, in.x, in.branch, in.weight, in.bias, kEps);
    const auto expected =
        residual_norm(in.x.to(at::kFloat), in.branch.to(at::kFloat), in.weight, in.bias, kEps);
    expect_as_torch(made, expected, {in.x, in.branch, in.weight, in.bias});
  }
}

TEST(ResidualNorm, the_kernel_needs_no_branch) {
  auto kernels = kernels_of_host();
  const auto in = inputs_of(72);
  const auto made = residual_norm_by_kernel(kernels, in.x, {}, in.weight, in.bias, kEps);
  const auto x = in.x.to(at::kFloat);
  expect_as_torch(made, residual_norm(x, in.weight, in.bias, kEps), {in.x, in.weight, in.bias});
}

TEST(ResidualNorm, the_kernel_has_the_same_bits_each_time) {
  auto kernels = kernels_of_host();
  const auto in = inputs_of(72);
  const std::vector<at::Tensor> leaves{in.x, in.branch, in.weight, in.bias};
  const auto run = [&] {
    return residual_norm_by_kernel(kernels, in.x, in.branch, in.weight, in.bias, kEps);
  };
  const auto first = run(), second = run();
  EXPECT_TRUE(first.normed.equal(second.normed));
  const auto one = gradients_of(first, leaves), other = gradients_of(second, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(one[i].equal(other[i])) << i;
}

TEST(ResidualNorm, rounds_to_the_nearest_even_and_keeps_what_is_not_finite) {
  const auto values =
      torch::tensor({1.0F, 1.00390625F, 1.01171875F, -2.5F, 3.0e38F, 3.4e38F, INFINITY, -INFINITY});
  const auto expected = values.to(at::kBFloat16).to(at::kFloat);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const float value = values[i].item<float>();
    EXPECT_EQ(host_gpu::first_of(host_gpu::rounded(value)), expected[i].item<float>()) << value;
  }
  EXPECT_TRUE(std::isnan(host_gpu::first_of(host_gpu::rounded(NAN))));
}

TEST(ResidualNorm, without_a_kernel_the_stream_is_float32) {
  EXPECT_EQ(residual_type(Precision::bf16, at::kCPU, 64), at::kFloat);
  EXPECT_EQ(residual_type(Precision::bf16, at::Device(at::kCUDA, 0), 64), at::kFloat);
}

}  // namespace
}  // namespace tj::trainer
