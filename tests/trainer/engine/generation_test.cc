#include "trainer/workloads/gpt2/generation.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

namespace tj::trainer {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr Gpt2Config kSmall{.layers = 3, .heads = 4, .width = 32, .context = 16, .vocabulary = 61};

/// Weights as large as those of a trained model: the logits are far apart.
struct Example {
  Gpt2 model{kSmall, {}, {.seed = 3}};
  at::NoGradGuard no_grad;

  Example() {
    auto generator = at::detail::createCPUGenerator(9);
    for (auto parameter : model.tensors())
      parameter.add_(torch::randn(parameter.sizes(), generator) * 0.2);
  }

  /// Of the last of `ids`, all computed anew.
  at::Tensor logits(const Ids& ids) const {
    return model.logits(torch::tensor(ids).unsqueeze(0)).select(1, -1).squeeze(0);
  }
  Generation generation() const { return {model, kSmall, at::kCPU}; }
};

Ids some_ids(std::int64_t count) {
  auto generator = at::detail::createCPUGenerator(5);
  const auto ids = torch::randint(0, kSmall.vocabulary, {count}, generator, torch::kInt64);
  return {ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + count};
}

double apart(const at::Tensor& one, const at::Tensor& other) {
  return (one - other).abs().max().item<double>();
}

TEST(Generation, cached_logits_are_those_of_the_whole_text) {
  const Example example;
  const auto ids = some_ids(kSmall.context);
  EXPECT_GT(example.logits(ids).std().item<double>(), 0.5) << "the logits show nothing";
  // The prompt alone; then one token at a time, or several.
  for (const std::size_t step : {1U, 3U}) {
    auto generation = example.generation();
    std::size_t done = 5;
    auto logits = generation.next({ids.data(), done});
    EXPECT_LT(apart(logits, example.logits({ids.begin(), ids.begin() + 5})), 1e-5);
    while (done + step <= ids.size()) {
      logits = generation.next({ids.data() + done, step});
      done += step;
      const Ids so_far(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(done));
      EXPECT_LT(apart(logits, example.logits(so_far)), 1e-5) << done << " tokens";
    }
  }
}

/// The rule of generation.h, over the plain model.
Ids greedy_without_cache(const Example& example, Ids window, std::size_t count) {
  Ids made;
  const auto context = static_cast<std::size_t>(kSmall.context);
  while (made.size() < count) {
    made.push_back(example.logits(window).argmax().item<std::int64_t>());
    window.push_back(made.back());
    if (window.size() > context)
      window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(context / 2));
  }
  return made;
}

TEST(Generation, greedy_tokens_are_those_of_a_loop_without_cache_beyond_the_context) {
  const Example example;
  const auto prompt = some_ids(4);
  Ids made;
  auto generation = example.generation();
  auto logits = generation.next(prompt);
  while (made.size() < 60) {
    made.push_back(logits.argmax().item<std::int64_t>());
    logits = generation.next({&made.back(), 1});
  }
  EXPECT_EQ(made, greedy_without_cache(example, prompt, 60));
  EXPECT_GT(std::set<std::int64_t>(made.begin(), made.end()).size(), 3U) << "a loop of few tokens";
}

TEST(Generation, of_a_prompt_that_is_too_long_the_end_counts) {
  const Example example;
  const auto ids = some_ids(50);
  EXPECT_LT(apart(example.generation().next(ids), example.logits({ids.end() - 16, ids.end()})),
            1e-5);
}

TEST(Generation, a_context_of_one_token_is_enough) {
  const Gpt2Config config{.layers = 1, .heads = 1, .width = 8, .context = 1, .vocabulary = 5};
  const Gpt2 model(config, {}, {.seed = 1});
  const at::NoGradGuard no_grad;
  Generation generation(model, config, at::kCPU);
  for (const std::int64_t id : {0, 3, 4}) {
    const auto expected = model.logits(torch::tensor(Ids{id}).unsqueeze(0)).flatten();
    EXPECT_LT(apart(generation.next({&id, 1}), expected), 1e-5);
  }
}

}  // namespace
}  // namespace tj::trainer
