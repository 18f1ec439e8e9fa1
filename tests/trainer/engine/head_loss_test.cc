#include "trainer/workloads/gpt2/head_loss.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>

#include "tests/trainer/engine/host_kernels.h"

namespace tj::trainer {
namespace host_gpu {

#define TJ_KERNELS(...) __VA_ARGS__
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workloads/gpt2/logit_gradients.inc"

}  // namespace host_gpu

namespace {

constexpr std::int64_t kIgnored = 3;

struct Case {
  std::int64_t tokens, width, vocabulary;
};

class HeadLoss : public testing::TestWithParam<Case> {};

TEST_P(HeadLoss, equals_the_plain_formula_in_value_and_gradient) {
  const auto [tokens, width, vocabulary] = GetParam();
  auto generator = at::detail::createCPUGenerator(7);
  const auto x = torch::randn({tokens, width}, generator).requires_grad_(true);
  const auto w = (torch::randn({vocabulary, width}, generator) * 0.3).requires_grad_(true);
  const auto targets = torch::randint(0, vocabulary, {tokens}, generator, torch::kInt64);
  targets[1] = kIgnored;
  const auto ours = head_loss_sum(x, w, targets, kIgnored) * 0.5;
  const auto plain =
      at::cross_entropy_loss(x.matmul(w.t()), targets, {}, at::Reduction::Sum, kIgnored) * 0.5;
  EXPECT_NEAR(ours.item<double>(), plain.item<double>(), 1e-5 * plain.item<double>());
  const auto our_gradients = torch::autograd::grad({ours}, {x, w});
  const auto gradients = torch::autograd::grad({plain}, {x, w});
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(torch::allclose(our_gradients[i], gradients[i], 1e-4, 1e-5)) << i;
  const at::NoGradGuard no_gradients;
  EXPECT_NEAR(head_loss_sum(x, w, targets, kIgnored).item<double>(), 2 * plain.item<double>(),
              2e-5 * plain.item<double>());
}

/// As on a GPU: the products round to eight bits, the rest does not.
TEST_P(HeadLoss, in_bfloat16_is_near_the_formula_for_the_rounded_values) {
  const auto [tokens, width, vocabulary] = GetParam();
  auto generator = at::detail::createCPUGenerator(7);
  const auto x = torch::randn({tokens, width}, generator).to(at::kBFloat16);
  const auto w = (torch::randn({vocabulary, width}, generator) * 0.3).to(at::kBFloat16);
  const auto targets = torch::randint(0, vocabulary, {tokens}, generator, torch::kInt64);
  targets[1] = kIgnored;
  const auto rounded = [](const at::Tensor& tensor) { return tensor.clone().requires_grad_(true); };
  const auto our_x = rounded(x), our_w = rounded(w);
  const auto plain_x = rounded(x.to(at::kFloat)), plain_w = rounded(w.to(at::kFloat));
  const auto ours = head_loss_sum(our_x, our_w, targets, kIgnored);
  const auto plain = at::cross_entropy_loss(plain_x.matmul(plain_w.t()), targets, {},
                                            at::Reduction::Sum, kIgnored);
  EXPECT_EQ(ours.scalar_type(), at::kFloat);
  EXPECT_NEAR(ours.item<double>() / plain.item<double>(), 1, 3e-3);
  const auto our_gradients = torch::autograd::grad({ours}, {our_x, our_w});
  const auto gradients = torch::autograd::grad({plain}, {plain_x, plain_w});
  for (std::size_t i = 0; i < 2; ++i) {
    const auto difference = (our_gradients[i].to(at::kFloat) - gradients[i]).norm();
    EXPECT_LT((difference / gradients[i].norm()).item<double>(), 2e-2) << i;
  }
}

/// 1 - p of a token that is nearly certain has to be found before it is rounded to eight bits.
TEST(HeadLossInBfloat16, a_certain_token_keeps_its_small_gradient) {
  const auto x = torch::tensor({{7.0F}}).to(at::kBFloat16).requires_grad_(true);
  const auto w = torch::tensor({{1.0F}, {0.0F}}).to(at::kBFloat16);
  const auto loss = head_loss_sum(x, w, torch::tensor({0}, torch::kInt64), kIgnored);
  const auto gradient = torch::autograd::grad({loss}, {x})[0].item<double>();
  const double wanted = 1 / (1 + std::exp(-7.0)) - 1;
  EXPECT_NEAR(gradient / wanted, 1, 0.01);
}

host_gpu::HostKernels kernels_of_host() {
  return host_gpu::HostKernels{{{"logit_gradients", host_gpu::call_of(host_gpu::logit_gradients)}}};
}

/// A row of more eights than a block of 1024 has threads, one of less than a warp, and a last eight
/// that is half filled.
TEST(LogitGradients, the_kernel_computes_what_torch_does) {
  auto kernels = kernels_of_host();
  auto generator = at::detail::createCPUGenerator(7);
  for (const auto& [vocabulary, stride] :
       {std::pair<std::int64_t, std::int64_t>{8500, 8512}, {700, 704}, {5, 64}}) {
    const auto logits =
        (torch::randn({4, stride}, generator) * 4).to(at::kBFloat16);  // behind the vocabulary, too
    const auto targets =
        torch::tensor({vocabulary - 1, kIgnored, std::int64_t{0}, std::int64_t{4}});
    const auto leaf = logits.narrow(1, 0, vocabulary).to(at::kFloat).detach().requires_grad_(true);
    const auto losses = at::cross_entropy_loss(leaf, targets, {}, at::Reduction::None, kIgnored);
    const auto wanted = torch::autograd::grad({losses.sum()}, {leaf})[0];

    const auto found = logit_gradients_by_kernel(kernels, logits, vocabulary, targets, kIgnored);
    EXPECT_TRUE(torch::allclose(-found, losses, 1e-5, 1e-5)) << vocabulary;
    const auto made = logits.to(at::kFloat);
    EXPECT_TRUE(torch::allclose(made.narrow(1, 0, vocabulary), wanted, 1.0 / 128, 1e-6))
        << vocabulary;
    EXPECT_EQ(made.narrow(1, vocabulary, stride - vocabulary).abs().max().item<float>(), 0);
    EXPECT_EQ(made[1].abs().max().item<float>(), 0) << "an ignored target";
  }
}

TEST(LogitGradients, what_is_not_a_number_is_told_in_the_loss) {
  auto kernels = kernels_of_host();
  for (const float odd : {NAN, INFINITY}) {
    const auto logits = torch::zeros({1, 64}, at::kBFloat16);
    logits[0][9] = odd;
    const auto found =
        logit_gradients_by_kernel(kernels, logits, 64, torch::tensor({1L}), kIgnored);
    EXPECT_TRUE(std::isnan(found.item<float>())) << odd;
  }
}

TEST(HeadLossBlocks, are_few_and_of_whole_tiles_on_a_gpu) {
  constexpr std::int64_t kGpt2 = 50257, kTokens = 32 * 1024;
  EXPECT_EQ(logit_stride(/*is_gpu=*/true, kGpt2), 50304);
  EXPECT_EQ(logit_rows(/*is_gpu=*/true, kTokens, 50304), 8192);
  EXPECT_EQ(logit_rows(/*is_gpu=*/true, 100, 50304), 100);
  EXPECT_EQ(logit_stride(/*is_gpu=*/false, kGpt2), 50272);
  EXPECT_EQ(logit_rows(/*is_gpu=*/false, kTokens, 50272), 667);
  EXPECT_EQ(logit_rows(/*is_gpu=*/false, kTokens, std::int64_t{1} << 40), 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadLoss,
                         testing::Values(Case{8, 5, 16}, Case{9, 8, 250},
                                         Case{1500, 4, 50257}));  // the last in several blocks

}  // namespace
}  // namespace tj::trainer
