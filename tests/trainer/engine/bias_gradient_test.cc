#include "trainer/workload/bias_gradient.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "tests/trainer/engine/host_kernels.h"

namespace tj::trainer {
namespace host_gpu {

#define TJ_KERNELS(...) __VA_ARGS__
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/column_sums.inc"

}  // namespace host_gpu

namespace {

host_gpu::HostKernels kernels_of_host() {
  return host_gpu::HostKernels{{{"column_sums", host_gpu::call_of(host_gpu::column_sums)}}};
}

/// More rows and columns than a block has.
constexpr std::int64_t kSamples = 3, kTokens = 100, kWidth = 264;

at::Tensor leaf(const at::Tensor& values) { return values.detach().requires_grad_(true); }

at::Tensor random_rows(std::int64_t width) {
  return torch::randn({kSamples, kTokens, width}).to(at::kBFloat16);
}

TEST(BiasGradient, is_the_sum_over_the_rows) {
  auto kernels = kernels_of_host();
  torch::manual_seed(7);
  const auto y = leaf(random_rows(kWidth)), bias = leaf(torch::zeros({kWidth}));
  const auto made = with_bias_gradient(kernels, y * 2, bias);
  EXPECT_TRUE(made.equal(y * 2));
  const auto d_made = random_rows(kWidth);
  const auto found = torch::autograd::grad({made}, {y, bias}, {d_made});
  EXPECT_TRUE(found[0].equal(d_made * 2));
  EXPECT_EQ(found[1].scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::allclose(found[1], d_made.to(at::kFloat).flatten(0, 1).sum(0), 1e-5, 1e-4));
}

TEST(BiasGradient, of_a_frozen_bias_is_not_computed) {
  host_gpu::HostKernels none{{}};
  const auto y = leaf(random_rows(kWidth));
  const auto made = with_bias_gradient(none, y * 2, torch::zeros({kWidth}));
  const auto found = torch::autograd::grad({made.sum()}, {y});
  EXPECT_EQ(found[0].to(at::kFloat).min().item<float>(), 2);
}

/// As attention reads them: a view of each third, whose gradient has another order in memory.
TEST(BiasGradient, thirds_are_joined_and_summed) {
  auto kernels = kernels_of_host();
  torch::manual_seed(7);
  const auto y = leaf(random_rows(3 * kWidth)), bias = leaf(torch::zeros({3 * kWidth}));
  const auto thirds = thirds_with_bias_gradient(kernels, y * 2, bias);
  std::vector<at::Tensor> by_head, gradients, joined;
  for (const auto& third : thirds) {
    by_head.push_back(third.view({kSamples, kTokens, 8, kWidth / 8}).transpose(1, 2));
    gradients.push_back(random_rows(kWidth));
    joined.push_back(gradients.back());
    gradients.back() = gradients.back().view({kSamples, kTokens, 8, kWidth / 8}).transpose(1, 2);
  }
  gradients[2] = gradients[2].contiguous();
  EXPECT_TRUE(torch::cat({thirds[0], thirds[1], thirds[2]}, 2).equal(y * 2));
  const auto found = torch::autograd::grad({by_head}, {y, bias}, gradients);
  const auto wanted = torch::cat(joined, 2);
  EXPECT_TRUE(found[0].equal(wanted * 2));
  EXPECT_TRUE(torch::allclose(found[1], wanted.to(at::kFloat).flatten(0, 1).sum(0), 1e-5, 1e-4));
}

TEST(BiasGradient, a_third_that_nobody_uses_has_none) {
  auto kernels = kernels_of_host();
  const auto y = leaf(random_rows(3 * kWidth)), bias = leaf(torch::zeros({3 * kWidth}));
  const auto thirds = thirds_with_bias_gradient(kernels, y * 1, bias);
  const auto found = torch::autograd::grad({thirds[1].sum()}, {y, bias});
  EXPECT_EQ(found[0].narrow(2, 0, kWidth).abs().max().item<float>(), 0);
  EXPECT_EQ(found[1].narrow(0, kWidth, kWidth).min().item<float>(), kSamples * kTokens);
  EXPECT_EQ(found[1].narrow(0, 2 * kWidth, kWidth).abs().max().item<float>(), 0);
}

TEST(BiasGradient, the_cpu_has_no_kernel_for_it) {
  EXPECT_EQ(bias_kernels(random_rows(kWidth), kWidth), nullptr);
}

}  // namespace
}  // namespace tj::trainer
