#include "trainer/workloads/gpt2/head_loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tj::trainer {
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

INSTANTIATE_TEST_SUITE_P(Shapes, HeadLoss,
                         testing::Values(Case{8, 5, 16}, Case{9, 8, 250},
                                         Case{1500, 4, 50257}));  // the last in several blocks

}  // namespace
}  // namespace tj::trainer
