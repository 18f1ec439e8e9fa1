#include "trainer/train/adamw.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

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

}  // namespace
}  // namespace tj::trainer
