#include "trainer/train/gradients.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "trainer/values/loss_scale.h"

namespace tj::trainer {
namespace {

double norm_clipped_to(const std::vector<at::Tensor>& gradients, double norm_max) {
  return clip_gradients(gradients, norm_max).item<double>();
}

TEST(Gradients, clipping_bounds_the_global_norm_and_says_what_it_was) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 3.0), torch::full({2, 2}, 4.0)};
  EXPECT_NEAR(norm_clipped_to(gradients, 0), 10, 1e-5);
  EXPECT_NEAR(norm_clipped_to(gradients, 20), 10, 1e-5);
  EXPECT_TRUE(gradients[0].equal(torch::full({4}, 3.0))) << "below the bound nothing changes";
  EXPECT_NEAR(norm_clipped_to(gradients, 5), 10, 1e-5);
  EXPECT_NEAR(norm_clipped_to(gradients, 0), 5, 1e-5);
}

/// So the factor need not be asked for before it is used: a GPU would be waited for.
TEST(Gradients, a_factor_of_one_changes_no_bit) {
  const auto values = torch::tensor({0.1F, -0.0F, 1e-40F, 3e38F, -7.0F});
  EXPECT_EQ(clip_factor(torch::tensor(0.5F), 1).item<float>(), 1.0F);
  const auto same = values * clip_factor(torch::tensor(0.5F), 1);
  EXPECT_TRUE(same.view(at::kInt).equal(values.view(at::kInt)));
}

/// Under ZeRO the norm is float64, and is rounded once.
TEST(Gradients, the_factor_is_a_float_that_was_computed_as_its_norm) {
  const auto factor = clip_factor(torch::tensor(3.0, at::kDouble), 2);
  EXPECT_EQ(factor.scalar_type(), at::kFloat);
  EXPECT_EQ(factor.item<float>(), static_cast<float>(2 / (3.0 + 1e-6)));
}

TEST(Gradients, a_norm_that_is_not_finite_is_said_and_not_spread) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 3.0), torch::full({2}, INFINITY)};
  EXPECT_FALSE(std::isfinite(norm_clipped_to(gradients, 1)));
}

TEST(Gradients, unscaling_divides_and_finds_what_is_not_finite) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 8.0), torch::full({2}, 16.0)};
  EXPECT_EQ(unscale_gradients(gradients, 8).item<float>(), 0);
  EXPECT_TRUE(gradients[1].equal(torch::full({2}, 2.0)));
  gradients[0][2] = NAN;
  EXPECT_NE(unscale_gradients(gradients, 8).item<float>(), 0);
}

TEST(Gradients, averages_move_by_what_the_decay_leaves) {
  const std::vector<at::Tensor> averages{torch::full({2}, 1.0)};
  update_averages(averages, {torch::full({2}, 3.0)}, 0.75);
  EXPECT_TRUE(averages[0].equal(torch::full({2}, 1.5)));
}

TEST(LossScale, halves_at_once_and_doubles_after_the_interval) {
  LossScale scale{.scale = 1024};
  scale.update(true, 3);
  scale.update(true, 3);
  scale.update(false, 3);
  EXPECT_EQ(scale, (LossScale{.scale = 512, .good_steps = 0}));
  for (int i = 0; i < 3; ++i) scale.update(true, 3);
  EXPECT_EQ(scale, (LossScale{.scale = 1024, .good_steps = 0}));
}

}  // namespace
}  // namespace tj::trainer
