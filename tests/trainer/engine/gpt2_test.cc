#include "trainer/workloads/gpt2/gpt2.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <ATen/Parallel.h>

#include <cmath>
#include <mutex>
#include <set>
#include <thread>

namespace tj::trainer {
namespace {

constexpr Gpt2Config kSmall{.layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 256};

at::Tensor random_tokens(std::int64_t samples, std::int64_t count) {
  auto generator = at::detail::createCPUGenerator(5);
  return torch::randint(0, 256, {samples, count}, generator, torch::kInt64);
}

/// It depends on how a unit is compiled: torch's header has a plain loop, too.
TEST(Gpt2, loops_of_our_own_kernels_are_shared_over_the_threads) {
  const int threads_before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  at::parallel_for(0, 8, /*grain_size=*/1, [&](std::int64_t, std::int64_t) {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  at::set_num_threads(threads_before);
  EXPECT_EQ(threads.size(), 2U);
}

TEST(Gpt2, has_the_tensors_that_its_config_says) {
  const Gpt2 model(kSmall, {}, {.seed = 1});
  const auto specs = gpt2_tensors(kSmall);
  ASSERT_EQ(model.tensors().size(), specs.size());
  std::int64_t total = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(model.tensors()[i].sizes().vec(), specs[i].shape);
    total += model.tensors()[i].numel();
  }
  EXPECT_EQ(total, parameter_count(kSmall));
}

TEST(Gpt2, begins_at_the_loss_of_a_fair_guess) {
  const Gpt2 model(gpt2_model(gpt2_presets().front()), {}, {.seed = 1337});
  const auto tokens = random_tokens(8, 65);
  EXPECT_NEAR(model.pass({tokens}, {}).loss.item<double>() / (8 * 64), std::log(256.0), 0.1);
}

TEST(Gpt2, initial_weights_follow_the_paper_and_the_seed) {
  const Gpt2Config config{.layers = 8, .heads = 4, .width = 128};
  const Gpt2 model(config, {}, {.seed = 1}), same(config, {}, {.seed = 1}),
      other(config, {}, {.seed = 2});
  EXPECT_TRUE(model.tensors()[0].equal(same.tensors()[0]));
  EXPECT_FALSE(model.tensors()[0].equal(other.tensors()[0]));
  const auto specs = gpt2_tensors(config);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& name = specs[i].name;
    const bool is_weight = name.ends_with(".weight") && name.find("ln_") == std::string::npos;
    if (!is_weight) continue;
    const double expected =
        name.find("c_proj") == std::string::npos ? 0.02 : 0.02 / 4;  // sqrt(2 * 8 layers)
    EXPECT_NEAR(model.tensors()[i].std().item<double>(), expected, expected * 0.05) << name;
  }
}

// The same arithmetic written out with plain matrix products and an explicit mask.
at::Tensor reference_loss(const Gpt2& model, const at::Tensor& tokens, Gelu form) {
  std::unordered_map<std::string, at::Tensor> w;
  const auto specs = gpt2_tensors(kSmall);
  for (std::size_t i = 0; i < specs.size(); ++i) w[specs[i].name.substr(12)] = model.tensors()[i];
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt() * w[name + ".weight"] +
           w[name + ".bias"];
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return x.matmul(w[name + ".weight"]) + w[name + ".bias"];
  };
  const auto inputs = tokens.narrow(1, 0, 8);
  auto x = w["wte.weight"].index({inputs}) + w["wpe.weight"];
  const auto mask = torch::ones({8, 8}, torch::kBool).triu(1);
  for (const std::string layer : {"h.0.", "h.1."}) {
    const auto qkv = linear(norm(x, layer + "ln_1"), layer + "attn.c_attn");
    std::vector<at::Tensor> heads;
    for (std::int64_t head = 0; head < 2; ++head) {
      const auto part = [&](std::int64_t index) { return qkv.narrow(2, index * 16 + head * 8, 8); };
      const auto scores = part(0).matmul(part(1).transpose(1, 2)) / std::sqrt(8.0);
      heads.push_back(scores.masked_fill(mask, -INFINITY).softmax(-1).matmul(part(2)));
    }
    x = x + linear(torch::cat(heads, 2), layer + "attn.c_proj");
    const auto h = linear(norm(x, layer + "ln_2"), layer + "mlp.c_fc");
    const auto inner = form == Gelu::erf
                           ? torch::erf(h / std::sqrt(2.0))
                           : torch::tanh(std::sqrt(2 / M_PI) * (h + 0.044715 * h.pow(3)));
    const auto gelu = 0.5 * h * (1 + inner);
    x = x + linear(gelu, layer + "mlp.c_proj");
  }
  const auto log_probabilities = norm(x, "ln_f").matmul(w["wte.weight"].t()).log_softmax(-1);
  return -log_probabilities.gather(2, tokens.narrow(1, 1, 8).unsqueeze(2)).sum();
}

TEST(Gpt2, agrees_with_the_written_out_formula_in_value_and_gradient) {
  for (const auto form : {Gelu::tanh, Gelu::erf}) {
    SCOPED_TRACE(to_string(form));
    auto config = kSmall;
    config.gelu = form;
    const Gpt2 model(config, {}, {.seed = 3});
    {
      const at::NoGradGuard no_grad;  // the initial biases are 0 and would hide a mistake
      auto generator = at::detail::createCPUGenerator(9);
      for (auto parameter : model.tensors())
        parameter.add_(torch::randn(parameter.sizes(), generator) * 0.1);
    }
    const auto tokens = random_tokens(3, 9);
    const auto ours = model.pass({tokens}, {}).loss;
    const auto reference = reference_loss(model, tokens, form);
    EXPECT_NEAR(ours.item<double>(), reference.item<double>(), 1e-4 * reference.item<double>());
    const auto our_gradients = torch::autograd::grad({ours}, model.tensors());
    const auto gradients = torch::autograd::grad({reference}, model.tensors());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(torch::allclose(our_gradients[i], gradients[i], 1e-3, 1e-4))
          << gpt2_tensors(kSmall)[i].name;
    }
  }
}

/// Else the test above would pass with one form for both.
TEST(Gpt2, the_forms_of_gelu_are_not_the_same) {
  auto config = kSmall;
  config.gelu = Gelu::erf;
  const Gpt2 tanh(kSmall, {}, {.seed = 3}), erf(config, {}, {.seed = 3});
  const at::NoGradGuard no_grad;
  for (const auto* const model : {&tanh, &erf}) {
    auto generator = at::detail::createCPUGenerator(9);
    for (auto parameter : model->tensors())
      parameter.add_(torch::randn(parameter.sizes(), generator) * 0.5);
  }
  const auto tokens = random_tokens(3, 8);
  const auto apart = (tanh.logits(tokens) - erf.logits(tokens)).abs().max().item<double>();
  EXPECT_GT(apart, 1e-4);
  EXPECT_LT(apart, 1.0);
}

}  // namespace
}  // namespace tj::trainer
