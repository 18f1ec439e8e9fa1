#include "trainer/workloads/taehv/clip_convolutions.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>
#include <vector>

namespace tj::trainer {
namespace {
using Tensors = std::vector<at::Tensor>;

at::Tensor random(at::IntArrayRef shape, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(shape, generator).requires_grad_(true);
}

bool is_channels_last(const at::Tensor& x) {
  return x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

void expect_near(const at::Tensor& ours, const at::Tensor& wanted) {
  ASSERT_EQ(ours.sizes(), wanted.sizes());
  EXPECT_LT((ours - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
}

/// Values, and gradients by all inputs of a sum in which each output has a weight of its own.
void expect_same(const std::function<at::Tensor(const Tensors&)>& ours,
                 const std::function<at::Tensor(const Tensors&)>& wanted, const Tensors& inputs) {
  const auto got = ours(inputs), should = wanted(inputs);
  expect_near(got, should);
  EXPECT_TRUE(is_channels_last(got));
  const auto weights = torch::randn(should.sizes(), at::detail::createCPUGenerator(9));
  const auto gradients = torch::autograd::grad({(got * weights).sum()}, inputs);
  const auto wanted_gradients = torch::autograd::grad({(should * weights).sum()}, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_near(gradients[i], wanted_gradients[i]);
}

TEST(ClipConvolutions, of_the_doubled_picture_is_what_the_plain_one_makes_of_it) {
  const Tensors inputs{random({3, 5, 4, 6}, 1), random({7, 5, 3, 3}, 2)};
  expect_same([](const Tensors& in) { return convolved_doubled(channels_last(in[0]), in[1]); },
              [](const Tensors& in) {
                return at::conv2d(at::upsample_nearest2d(in[0], {8, 12}), in[1], {}, 1, 1);
              },
              inputs);
}

TEST(ClipConvolutions, with_the_past_is_the_plain_one_of_both_frames) {
  constexpr std::int64_t kClips = 2;
  const Tensors inputs{random({6, 4, 5, 5}, 3), random({3, 8, 3, 3}, 4), random({3}, 5)};
  expect_same(
      [](const Tensors& in) {
        return convolved_with_past(channels_last(in[0]), {in[1], in[2]}, kClips);
      },
      [](const Tensors& in) {
        const auto frames = in[0].unflatten(0, {kClips, -1});
        const auto before =
            at::cat({torch::zeros({kClips, 1, 4, 5, 5}), frames.slice(1, 0, -1)}, 1);
        return at::conv2d(at::cat({frames, before}, 2).flatten(0, 1), in[1], in[2], 1, 1);
      },
      inputs);
}

TEST(ClipConvolutions, what_is_not_trained_gets_no_gradient) {
  const auto x = random({2, 4, 5, 5}, 6), weight = random({4, 4, 3, 3}, 7).detach();
  const auto both = random({4, 8, 3, 3}, 8).detach(), bias = random({4}, 9);
  const auto made = convolved_doubled(convolved_with_past(x, {both, bias}, 1), weight);
  const auto gradients = torch::autograd::grad({made.sum()}, {x, bias});
  EXPECT_GT(gradients[0].norm().item<double>(), 0);
  EXPECT_GT(gradients[1].norm().item<double>(), 0);
}

/// Under half precision the weights stay float32, and so do their gradients.
TEST(ClipConvolutions, compute_in_the_type_of_the_frames) {
  const auto x = random({2, 4, 5, 5}, 6).to(at::kBFloat16).detach().requires_grad_(true);
  const auto both = random({4, 8, 3, 3}, 7), bias = random({4}, 8),
             weight = random({4, 4, 3, 3}, 9);
  const auto past = convolved_with_past(x, {both, bias}, 1);
  EXPECT_EQ(past.scalar_type(), at::kBFloat16);
  const auto made = convolved_doubled(past, weight);
  EXPECT_EQ(made.scalar_type(), at::kBFloat16);
  const auto gradients = torch::autograd::grad({made.sum()}, {x, both, bias, weight});
  EXPECT_EQ(gradients[0].scalar_type(), at::kBFloat16);
  for (std::size_t i = 1; i < gradients.size(); ++i)
    EXPECT_EQ(gradients[i].scalar_type(), at::kFloat);
}

TEST(ClipConvolutions, folded_frames_stand_one_behind_the_other_in_the_channels) {
  const auto x = channels_last(random({6, 4, 2, 3}, 10).detach());
  const auto folded = frames_folded(x, 2);
  EXPECT_TRUE(folded.equal(x.reshape({3, 8, 2, 3})));
  EXPECT_TRUE(is_channels_last(folded));
  const auto back = frames_unfolded(folded, 2);
  EXPECT_TRUE(back.equal(x));
  EXPECT_TRUE(is_channels_last(back));
}

TEST(ClipConvolutions, first_frames_of_each_clip_are_left_out) {
  const auto x = channels_last(random({6, 4, 2, 3}, 11).detach());
  const auto rest = without_first(x, 1, /*clips=*/2);
  EXPECT_TRUE(rest.equal(at::stack({x[1], x[2], x[4], x[5]})));
  EXPECT_TRUE(is_channels_last(rest));
}

}  // namespace
}  // namespace tj::trainer
