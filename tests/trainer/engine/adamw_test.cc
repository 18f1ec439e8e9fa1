#include "trainer/train/adamw.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace tj::trainer {
namespace {

TEST(AdamW, follows_the_paper_and_decays_matrices_only) {
  const auto matrix = torch::full({3, 5}, 2.0).requires_grad_(true);
  const auto vector = torch::full({7}, 2.0).requires_grad_(true);
  AdamW optimizer({matrix, vector}, {{.weight_decay = 0.1}, {.weight_decay = 0}});
  constexpr double kLr = 0.01;
  double m = 0, v = 0, with_decay = 2, without = 2;
  for (int step = 1; step <= 5; ++step) {
    const double gradient = 0.3 * step - 1.0;
    matrix.mutable_grad() = torch::full({3, 5}, gradient);
    vector.mutable_grad() = torch::full({7}, gradient);
    optimizer.step(kLr);
    m = 0.9 * m + 0.1 * gradient;
    v = 0.95 * v + 0.05 * gradient * gradient;
    const double change =
        kLr * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.95, step))) + 1e-8);
    with_decay = with_decay * (1 - kLr * 0.1) - change;
    without -= change;
  }
  EXPECT_TRUE(torch::allclose(matrix, torch::full({3, 5}, with_decay), 1e-5, 1e-6)) << matrix;
  EXPECT_TRUE(torch::allclose(vector, torch::full({7}, without), 1e-5, 1e-6)) << vector;
}

/// Whether a step is skipped the device decides, and nobody asks it before.
TEST(AdamW, a_skipped_step_leaves_weights_and_moments) {
  const auto weights = torch::full({70}, 2.0).requires_grad_(true);
  AdamW optimizer({weights}, {{}});
  weights.mutable_grad() = torch::full({70}, NAN);
  optimizer.step(0.01, torch::ones({}));
  EXPECT_TRUE(weights.equal(torch::full({70}, 2.0)));
  EXPECT_TRUE(optimizer.first_moments()[0].equal(torch::zeros({70})));
  optimizer.set_step_count(0);
  weights.mutable_grad() = torch::ones({70});
  optimizer.step(0.01, torch::zeros({}));
  EXPECT_EQ(optimizer.step_count(), 1);
  EXPECT_FALSE(weights.equal(torch::full({70}, 2.0)));
}

}  // namespace
}  // namespace tj::trainer
