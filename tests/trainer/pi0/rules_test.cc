#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>

#include "tests/trainer/pi0/presets.h"
#include "trainer/workload/rotary.h"
#include "trainer/workloads/pi0/flow.h"
#include "trainer/workloads/pi0/visibility.h"

namespace tj::trainer {
namespace {

at::Tensor bools(std::vector<int> values) {
  return torch::tensor(values).to(at::kBool).unsqueeze(0);
}

/// A row for each token: x where it sees, . where not.
std::string picture(const at::Tensor& visible) {
  std::string text;
  const auto rows = visible[0][0];
  for (std::int64_t query = 0; query < rows.size(0); ++query) {
    for (std::int64_t key = 0; key < rows.size(1); ++key)
      text += rows[query][key].item<bool>() ? 'x' : '.';
    text += '\n';
  }
  return text;
}

TEST(Pi0Visibility, a_block_sees_itself_and_those_before_it) {
  const auto rule = visibility(bools({1, 1, 1, 1, 1, 1}), torch::tensor({0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(picture(rule.visible),
            "xxx...\n"
            "xxx...\n"
            "xxx...\n"
            "xxxx..\n"
            "xxxxxx\n"
            "xxxxxx\n");
  EXPECT_TRUE(rule.positions.equal(torch::arange(6).unsqueeze(0)));
}

TEST(Pi0Visibility, nobody_sees_what_is_not_valid_and_positions_pass_over_it) {
  const auto rule = visibility(bools({0, 1, 0, 1, 1, 1}), torch::tensor({0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(picture(rule.visible),
            "x.....\n"  // itself alone: a row without any would have no softmax
            ".x....\n"
            "..x...\n"
            ".x.x..\n"
            ".x.xxx\n"
            ".x.xxx\n");
  EXPECT_TRUE(rule.positions.equal(torch::tensor({{-1, 0, 0, 1, 2, 3}})));
}

/// Images and prompt, then the state, then the actions.
TEST(Pi0Visibility, images_and_prompt_see_no_state_and_the_state_sees_no_action) {
  auto config = smallest_pi0();
  config.vision.image_side = config.vision.patch_side;  // one token of each image
  config.prompt_tokens = 2;
  config.horizon = 2;
  const auto rule = pi0_visibility(config, bools({1, 0}), bools({1, 0}));
  EXPECT_EQ(picture(rule.visible),
            "x.x....\n"
            ".x.....\n"
            "x.x....\n"
            "...x...\n"
            "x.x.x..\n"
            "x.x.xxx\n"
            "x.x.xxx\n");
  EXPECT_TRUE(rule.positions.equal(torch::tensor({{0, 0, 1, 1, 2, 3, 4}})));
  config.kind = Pi0Config::Kind::pi05;
  EXPECT_EQ(picture(pi0_visibility(config, bools({1, 0}), bools({1, 0})).visible),
            "x.x...\n"
            ".x....\n"
            "x.x...\n"
            "...x..\n"
            "x.x.xx\n"
            "x.x.xx\n");
}

/// Scores depend on distances alone.
TEST(Pi0Rotation, turns_by_the_distance_of_positions) {
  torch::manual_seed(1);
  const auto q = torch::randn({1, 1, 1, 8}), k = torch::randn({1, 1, 1, 8});
  const auto score = [&](std::int64_t of_q, std::int64_t of_k) {
    const auto at = [](std::int64_t place) { return rotation_of(torch::tensor({{place}}), 8); };
    return (rotated(q, at(of_q)) * rotated(k, at(of_k))).sum().item<double>();
  };
  EXPECT_NEAR(score(3, 1), score(10, 8), 1e-5);
  EXPECT_GT(std::abs(score(3, 1) - score(4, 1)), 1e-3);
  EXPECT_NEAR(score(5, 5), (q * k).sum().item<double>(), 1e-5);
}

/// The same operations in the same order, so the same bits; forward and back.
TEST(Pi0Rotation, a_loop_turns_as_tensor_operations_do) {
  torch::manual_seed(1);
  const auto places = torch::randint(900, {3, 70});
  const auto all = rotation_of(places, 16);
  const auto rotation = all.narrowed(6, 64);
  for (const std::int64_t heads : {8, 1}) {
    // As a product of matrices leaves it: heads behind the tokens.
    const auto x = torch::randn({3, 64, heads, 16}).requires_grad_(true);
    const auto weights = torch::randn({3, heads, 66, 16}).narrow(2, 1, 64);
    std::vector<at::Tensor> turned, gradients;
    for (const auto& turn : {rotated_by_loop, rotated_by_tensors}) {
      turned.push_back(turn(x.transpose(1, 2), rotation.cosine, rotation.sine));
      gradients.push_back(torch::autograd::grad({(turned.back() * weights).sum()}, {x})[0]);
    }
    EXPECT_TRUE(turned[0].equal(turned[1]));
    EXPECT_TRUE(gradients[0].equal(gradients[1]));
  }
}

/// The first pair turns by one radian a place, the last by 10000^(-6/8).
TEST(Pi0Rotation, has_gemmas_frequencies_and_halves) {
  const auto x = torch::tensor(std::vector<float>{1, 0, 0, 1, 0, 0, 0, 0}).view({1, 1, 1, 8});
  const auto turned = rotated(x, rotation_of(torch::tensor({{2}}), 8)).view({8});
  EXPECT_NEAR(turned[0].item<double>(), std::cos(2.0), 1e-6);
  EXPECT_NEAR(turned[4].item<double>(), std::sin(2.0), 1e-6);
  EXPECT_NEAR(turned[3].item<double>(), std::cos(2.0 / 1000), 1e-6);
  EXPECT_NEAR(turned[7].item<double>(), std::sin(2.0 / 1000), 1e-6);
}

TEST(Pi0Flow, time_is_embedded_by_periods_from_four_thousandths_to_four) {
  const auto embedding = time_embedding(torch::tensor({0.0F, 0.003F, 1.0F}), 8);
  EXPECT_EQ(embedding.scalar_type(), at::kFloat);
  for (std::int64_t i = 0; i < 4; ++i) {
    const double period = 4e-3 * std::pow(1000.0, static_cast<double>(i) / 3);
    EXPECT_NEAR(embedding[0][i].item<double>(), 0, 1e-7);
    EXPECT_NEAR(embedding[0][4 + i].item<double>(), 1, 1e-7);
    const double angle = 2 * M_PI * static_cast<double>(0.003F) / period;
    EXPECT_NEAR(embedding[1][i].item<double>(), std::sin(angle), 1e-6) << i;
    EXPECT_NEAR(embedding[1][4 + i].item<double>(), std::cos(angle), 1e-6) << i;
  }
  EXPECT_NEAR(embedding[2][3].item<double>(), 1, 1e-6);  // a quarter of the longest period
}

TEST(Pi0Flow, goes_from_the_actions_to_the_noise) {
  const auto actions = torch::full({1, 2, 3}, 2.0F);
  const FlowDraw draw{.noise = torch::full({1, 2, 3}, -1.0F), .time = torch::tensor({0.25F})};
  EXPECT_TRUE(noisy_actions(actions, draw).allclose(torch::full({1, 2, 3}, 1.25F)));
  EXPECT_TRUE(flow_velocity(actions, draw).equal(torch::full({1, 2, 3}, -3.0F)));
}

/// Whatever the number of ranks and passes: they only cut the samples in other pieces.
TEST(Pi0Flow, draws_are_of_the_sample_and_of_nothing_else) {
  const auto whole = flow_draw(7, 100, {6, 4, 3}, at::kCPU);
  const auto part = flow_draw(7, 102, {3, 4, 3}, at::kCPU);
  EXPECT_TRUE(whole.noise.narrow(0, 2, 3).equal(part.noise));
  EXPECT_TRUE(whole.time.narrow(0, 2, 3).equal(part.time));
  const auto other_seed = flow_draw(8, 100, {6, 4, 3}, at::kCPU);
  EXPECT_FALSE(whole.noise.equal(other_seed.noise));
  // No two samples have the same.
  const auto many = flow_draw(7, 0, {512, 4, 3}, at::kCPU);
  EXPECT_EQ(std::get<0>(at::unique_dim(many.noise.flatten(1), 0)).size(0), 512);
  EXPECT_GT(std::get<0>(at::_unique(many.time)).numel(), 500);
}

TEST(Pi0Flow, evaluations_draw_by_the_numbers_of_the_samples) {
  const auto all = flow_draw_by_number(7, torch::tensor({5, 3, 9}), {3, 4, 3}, at::kCPU);
  const auto one = flow_draw_by_number(7, torch::tensor({9}), {1, 4, 3}, at::kCPU);
  EXPECT_TRUE(all.noise[2].equal(one.noise[0]));
  EXPECT_TRUE(all.time[2].equal(one.time[0]));
  EXPECT_FALSE(flow_draw(7, 9, {1, 4, 3}, at::kCPU).noise.equal(one.noise));
}

TEST(Pi0Flow, evaluations_sample_from_noise_of_the_numbers_alone) {
  constexpr std::int64_t kSamples = 256;
  const auto all = sampling_noise(7, torch::arange(kSamples), {kSamples, 4, 3}, at::kCPU);
  EXPECT_EQ(std::get<0>(at::unique_dim(all.flatten(1), 0)).size(0), kSamples);
  const auto some = sampling_noise(7, torch::tensor({9, 3}), {2, 4, 3}, at::kCPU);
  EXPECT_TRUE(some[0].equal(all[9]));
  EXPECT_TRUE(some[1].equal(all[3]));
  // Neither that of the losses nor that of the training.
  EXPECT_FALSE(
      some.equal(flow_draw_by_number(7, torch::tensor({9, 3}), {2, 4, 3}, at::kCPU).noise));
  EXPECT_FALSE(some[0].equal(flow_draw(7, 9, {1, 4, 3}, at::kCPU).noise[0]));
}

/// Of Beta(1.5, 1) the distribution function is t^1.5.
TEST(Pi0Flow, times_and_noise_are_distributed_as_published) {
  constexpr std::int64_t kSamples = 4096;
  const auto draw = flow_draw(3, 0, {kSamples, 8, 4}, at::kCPU);
  EXPECT_GE(draw.time.min().item<double>(), 0.001);
  EXPECT_LE(draw.time.max().item<double>(), 1);
  const auto share_below = [&](double t) {
    return draw.time.lt(0.001 + 0.999 * t).to(at::kFloat).mean().item<double>();
  };
  for (const double t : {0.25, 0.5, 0.75}) EXPECT_NEAR(share_below(t), std::pow(t, 1.5), 0.03);
  EXPECT_NEAR(draw.noise.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(draw.noise.square().mean().item<double>(), 1, 0.02);
}

}  // namespace
}  // namespace tj::trainer
