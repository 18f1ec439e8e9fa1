#include "trainer/workloads/gpt2/biased_gelu.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "tests/trainer/engine/host_kernels.h"

namespace tj::trainer {
namespace host_gpu {

#define TJ_KERNELS(...) __VA_ARGS__
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/column_sums.inc"
#include "trainer/workloads/gpt2/gelu_backward.inc"

}  // namespace host_gpu

namespace {

host_gpu::HostKernels kernels_of_host() {
  return host_gpu::HostKernels{{{"gelu_backward", host_gpu::call_of(host_gpu::gelu_backward)}}};
}

at::Tensor leaf(const at::Tensor& values) { return values.detach().requires_grad_(true); }

/// More rows and columns than a block has.
TEST(BiasedGelu, the_kernel_computes_what_torch_does) {
  constexpr std::int64_t kRows = 300, kWidth = 264;
  auto kernels = kernels_of_host();
  torch::manual_seed(7);
  const auto x = leaf((torch::randn({kRows, kWidth}) * 3).to(at::kBFloat16));
  const auto bias = leaf(torch::zeros({kWidth}));
  const auto d_y = torch::randn({kRows, kWidth}).to(at::kBFloat16);
  const auto made = biased_gelu(kernels, x, bias);
  const auto found = torch::autograd::grad({made}, {x, bias}, {d_y});

  const auto plain_x = leaf(x.to(at::kFloat));
  const auto plain = at::gelu(plain_x, "tanh");
  const auto wanted = torch::autograd::grad({plain}, {plain_x}, {d_y.to(at::kFloat)})[0];
  EXPECT_TRUE(torch::allclose(made.to(at::kFloat), plain, 1.0 / 128, 1e-3));
  EXPECT_TRUE(torch::allclose(found[0].to(at::kFloat), wanted, 1.0 / 128, 1e-5));
  EXPECT_EQ(found[1].scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::allclose(found[1], wanted.sum(0), 1e-4, 1e-3));
}

TEST(BiasedGelu, has_a_slope_where_the_exponential_has_no_bounds) {
  EXPECT_EQ(host_gpu::gelu_slope(-1000), 0);
  EXPECT_EQ(host_gpu::gelu_slope(1000), 1);
  EXPECT_EQ(host_gpu::gelu_slope(0), 0.5F);
  EXPECT_TRUE(std::isnan(host_gpu::gelu_slope(NAN)));
}

TEST(BiasedGelu, needs_the_kernels_of_the_bias) { EXPECT_EQ(gelu_kernels(nullptr), nullptr); }

}  // namespace
}  // namespace tj::trainer
