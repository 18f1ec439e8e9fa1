#include "trainer/workload/attention.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <optional>
#include <string_view>

namespace tj::trainer {
namespace {

std::vector<at::Tensor> inputs() {
  auto generator = at::detail::createCPUGenerator(5);
  std::vector<at::Tensor> made;
  for (int i = 0; i < 3; ++i)
    made.push_back(torch::randn({2, 3, 40, 8}, generator).requires_grad_(true));
  return made;
}

TEST(Attention, in_one_order_has_the_values_and_gradients_of_torchs_own) {
  const auto ours = inputs(), theirs = inputs();
  const auto got = causal_attention_in_order(ours[0], ours[1], ours[2]);
  const auto wanted =
      at::scaled_dot_product_attention(theirs[0], theirs[1], theirs[2], {}, 0.0, true);
  EXPECT_TRUE(got.equal(wanted));
  EXPECT_TRUE(causal_attention(ours[0], ours[1], ours[2]).equal(wanted));
  const auto our_gradients = torch::autograd::grad({got.square().sum()}, ours);
  const auto gradients = torch::autograd::grad({wanted.square().sum()}, theirs);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(our_gradients[i].equal(gradients[i])) << i;
}

TEST(Attention, an_input_that_is_not_trained_gets_no_gradient) {
  const auto ours = inputs();
  const auto got = causal_attention_in_order(ours[0].detach(), ours[1], ours[2]);
  const auto gradients = torch::autograd::grad({got.sum()}, {ours[1], ours[2]});
  EXPECT_GT(gradients[1].norm().item<double>(), 0);
}

/// By the definition, with a head of keys for all of the queries'.
TEST(Attention, a_mask_says_who_sees_whom) {
  auto generator = at::detail::createCPUGenerator(6);
  const auto make = [&](std::int64_t heads, std::int64_t tokens) {
    return torch::randn({2, heads, tokens, 8}, generator).requires_grad_(true);
  };
  const auto q = make(3, 5), k = make(1, 7), v = make(1, 7);
  const auto visible =
      (torch::rand({2, 1, 5, 7}, generator) > 0.5).logical_or(torch::eye(5, 7).gt(0));
  const auto scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(8.0);
  const auto wanted =
      at::matmul(scores.masked_fill(visible.logical_not(), -INFINITY).softmax(-1), v);
  const auto gradients = torch::autograd::grad({wanted.square().sum()}, {q, k, v});
  for (const auto& got :
       {masked_attention(q, k, v, visible), masked_attention_in_order(q, k, v, visible)}) {
    EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-5);
    const auto ours = torch::autograd::grad({got.square().sum()}, {q, k, v});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_LT((ours[i] - gradients[i]).abs().max().item<double>(), 1e-4) << i;
  }
}

TEST(Attention, without_a_mask_all_see_all) {
  const auto ours = inputs();
  EXPECT_TRUE(masked_attention(ours[0], ours[1], ours[2])
                  .equal(at::scaled_dot_product_attention(ours[0], ours[1], ours[2])));
}

/// What the switch was when attention's own backward ran on this thread.
thread_local std::optional<bool> was_in_order;

std::unique_ptr<at::ObserverContext> look(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  if (name.starts_with("aten::_scaled_dot_product") && name.ends_with("_backward"))
    was_in_order = at::globalContext().deterministicAlgorithms();
  return nullptr;
}

/// The switch is the whole process's, and some operations of a pass refuse to run under it.
TEST(Attention, only_its_backward_asks_for_one_order) {
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&look));
  const auto ours = inputs();
  const auto got = causal_attention_in_order(ours[0], ours[1], ours[2]).square();
  bool is_on_outside = true;
  got.register_hook(
      [&](const at::Tensor&) { is_on_outside = at::globalContext().deterministicAlgorithms(); });
  got.sum().backward();
  at::removeCallback(handle);
  EXPECT_EQ(was_in_order, true);
  EXPECT_FALSE(is_on_outside);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
}

TEST(Attention, torch_says_which_backend_it_takes) {
  EXPECT_EQ(attention_backend(at::kCPU, at::kFloat), "flash");
}

}  // namespace
}  // namespace tj::trainer
