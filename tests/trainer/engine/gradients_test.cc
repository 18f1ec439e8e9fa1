#include "trainer/train/gradients.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trainer/values/loss_scale.h"

namespace tj::trainer {
namespace {

TEST(Gradients, clipping_bounds_the_global_norm_and_says_what_it_was) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 3.0), torch::full({2, 2}, 4.0)};
  EXPECT_NEAR(clip_gradients(gradients, 0), 10, 1e-5);
  EXPECT_NEAR(clip_gradients(gradients, 20), 10, 1e-5);
  EXPECT_TRUE(gradients[0].equal(torch::full({4}, 3.0))) << "below the bound nothing changes";
  EXPECT_NEAR(clip_gradients(gradients, 5), 10, 1e-5);
  EXPECT_NEAR(clip_gradients(gradients, 0), 5, 1e-5);
}

TEST(Gradients, a_norm_that_is_not_finite_is_said_and_not_spread) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 3.0), torch::full({2}, INFINITY)};
  EXPECT_FALSE(std::isfinite(clip_gradients(gradients, 1)));
}

TEST(Gradients, unscaling_divides_and_finds_what_is_not_finite) {
  const std::vector<at::Tensor> gradients{torch::full({4}, 8.0), torch::full({2}, 16.0)};
  EXPECT_TRUE(unscale_gradients(gradients, 8));
  EXPECT_TRUE(gradients[1].equal(torch::full({2}, 2.0)));
  gradients[0][2] = NAN;
  EXPECT_FALSE(unscale_gradients(gradients, 8));
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
