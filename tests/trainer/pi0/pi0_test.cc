#include "trainer/workloads/pi0/pi0.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include "tests/trainer/pi0/batches.h"
#include "tests/trainer/pi0/presets.h"

namespace tj::trainer {
namespace {

/// No tensor is zero, as the gates of adaRMS are in the beginning: zeros hide mistakes.
Pi0 random_model(const Pi0Config& config, const ModelOptions& options = {.seed = 3}) {
  torch::manual_seed(2);
  std::vector<at::Tensor> weights;
  for (const auto& spec : pi0_tensors(config).specs) {
    const double spread =
        spec.shape.size() > 1 ? 1 / std::sqrt(static_cast<double>(spec.shape.back())) : 0.1;
    weights.push_back(
        (torch::randn(spec.shape) * spread).requires_grad_(spec.kind == TensorKind::trained));
  }
  return {std::move(weights), config, options};
}

std::vector<at::Tensor> trained_of(const Pi0& model) {
  std::vector<at::Tensor> trained;
  for (const auto& tensor : model.tensors())
    if (tensor.requires_grad()) trained.push_back(tensor);
  return trained;
}

double loss_of(const Pi0& model, const Batch& batch, std::int64_t first_sample) {
  return model.pass(batch, first_sample).loss.item<double>();
}

TEST(Pi0, bytes_are_pixels_from_minus_one_to_one) {
  const ColourSamples source(smallest_pi0(), 8);
  const auto batch = pi0_batch(read_batch(source, 0, 2));
  const auto& seen = batch.observation;
  EXPECT_EQ(seen.images.sizes(), at::IntArrayRef({2, 2, 3, 28, 28}));
  EXPECT_NEAR(seen.images[1][0].mean().item<double>(), ColourSample::of(1).action(0), 1e-5);
  EXPECT_EQ(seen.images[1][1].max().item<double>(), -1);
  EXPECT_TRUE(seen.image_mask.equal(torch::tensor({{true, false}, {true, false}})));
  EXPECT_EQ(seen.tokens.scalar_type(), at::kLong);
  EXPECT_EQ(batch.actions[1][3][1].item<float>(), ColourSample::of(1).state);
  EXPECT_TRUE(batch.numbers.equal(torch::arange(2)));
}

TEST(Pi0, words_are_scaled_and_images_are_not) {
  const auto config = smallest_pi0();
  const auto model = random_model(config);
  const at::NoGradGuard no_gradients;
  const auto batch = random_batch(config, 2).observation;
  const auto prefix = model.prefix(batch);
  EXPECT_EQ(prefix.sizes(), at::IntArrayRef({2, 2 * 4 + 8, 64}));
  const auto& words = model.tensors()[pi0_tensors(config).words];
  EXPECT_TRUE(prefix.narrow(1, 8, 8).allclose(words.index({batch.tokens}) * 8.0));
  EXPECT_LT(prefix.narrow(1, 0, 8).std().item<double>(), 2);
}

/// Whichever rank has which of them, and in how many passes.
TEST(Pi0, the_loss_of_a_batch_is_that_of_its_parts) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto model = random_model(config);
    const at::NoGradGuard no_gradients;
    const auto batch = as_read(random_batch(config, 6));
    const double whole = loss_of(model, batch, 40);
    const double parts = loss_of(model, narrowed(batch, 0, 2), 40) +
                         loss_of(model, narrowed(batch, 2, 3), 42) +
                         loss_of(model, narrowed(batch, 5, 1), 45);
    EXPECT_NEAR(parts / whole, 1, 1e-5);
    EXPECT_GT(std::abs(loss_of(model, batch, 41) / whole - 1), 1e-3);
  }
}

TEST(Pi0, an_evaluation_draws_the_same_each_time_and_in_any_order) {
  const auto config = smallest_pi0();
  const auto model = random_model(config);
  const at::NoGradGuard no_gradients;
  const auto batch = as_read(random_batch(config, 4));
  const auto loss = [&](const Batch& part) { return model.pass(part, {}).loss.item<double>(); };
  EXPECT_EQ(loss(batch), loss(batch));
  EXPECT_NEAR((loss(narrowed(batch, 3, 1)) + loss(narrowed(batch, 0, 3))) / loss(batch), 1, 1e-5);
}

TEST(Pi0, nothing_that_is_masked_changes_the_loss) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto model = random_model(config);
    const at::NoGradGuard no_gradients;
    auto batch = random_batch(config, 2);
    const double before = loss_of(model, as_read(batch), 0);
    batch.observation.images[0][1] = 0.5;
    batch.observation.tokens[0][7] = 1;
    EXPECT_EQ(loss_of(model, as_read(batch), 0), before);
    batch.observation.tokens[0][0] = (batch.observation.tokens[0][0] + 1) % config.vocabulary;
    EXPECT_NE(loss_of(model, as_read(batch), 0), before);
  }
}

TEST(Pi0, actions_that_do_not_count_are_not_in_the_loss) {
  auto config = smallest_pi0();
  const auto all = random_model(config);
  config.actions_counted = 3;
  const auto fewer = random_model(config);
  const at::NoGradGuard no_gradients;
  const auto batch = random_batch(config, 2);
  const FlowDraw draw = flow_draw(3, 0, batch.actions.sizes(), at::kCPU);
  EXPECT_LT(fewer.loss(batch, draw).item<double>(), all.loss(batch, draw).item<double>());
}

/// The same operations in the same order, so the same bits.
TEST(Pi0, recomputing_changes_no_gradient) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto batch = as_read(random_batch(config, 3));
    std::vector<std::vector<at::Tensor>> gradients;
    for (const bool recompute : {false, true}) {
      const auto model = random_model(config, {.seed = 3, .recompute = recompute});
      gradients.push_back(torch::autograd::grad({model.pass(batch, 0).loss}, trained_of(model)));
    }
    for (std::size_t i = 0; i < gradients[0].size(); ++i)
      EXPECT_TRUE(gradients[0][i].equal(gradients[1][i])) << i;
  }
}

TEST(Pi0, each_trained_tensor_gets_a_gradient) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto model = random_model(config);
    const auto loss = model.pass(as_read(random_batch(config, 3)), 0).loss;
    const auto specs = pi0_tensors(config).specs;
    const auto trained = trained_of(model);
    const auto gradients = torch::autograd::grad({loss}, trained);
    std::size_t next = 0;
    for (const auto& spec : specs) {
      if (spec.kind != TensorKind::trained) continue;
      // Of keys' biases all scores of a query change alike: softmax takes that off.
      if (!spec.name.ends_with("k_proj.bias")) {
        EXPECT_GT(gradients[next].abs().max().item<double>(), 0) << spec.name;
      }
      ++next;
    }
  }
}

/// A cache of the prefix changes nothing: the velocity in full, step by step, gives the same.
TEST(Pi0, sampling_looks_at_images_and_prompt_once_and_at_nothing_else) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto model = random_model(config);
    const at::NoGradGuard no_gradients;
    auto batch = random_batch(config, 2);
    const auto noise = torch::randn(batch.actions.sizes());
    const auto sampled = model.sampled_actions(batch.observation, noise, 1);
    // One step from time 1 goes to noise - velocity: with that as the actions the model errs by 0.
    batch.actions = sampled;
    const FlowDraw draw{.noise = noise, .time = torch::ones({2})};
    const double error = model.loss(batch, draw).item<double>();
    EXPECT_LT(error, 1e-6 * sampled.square().sum().item<double>());
    EXPECT_TRUE(model.sampled_actions(batch.observation, noise)
                    .equal(model.sampled_actions(batch.observation, noise)));
  }
}

std::pair<double, double> action_error_sums(const Pi0& model, const Batch& batch) {
  const auto sums = model.pass(batch, {}).metrics;
  return {sums.at(0).item<double>(), sums.at(1).item<double>()};
}

TEST(Pi0, an_evaluation_samples_actions_and_tells_how_far_they_are_off) {
  for (const auto kind : kPi0Kinds) {
    auto config = smallest_pi0(kind);
    config.actions_counted = 3;
    const auto model = random_model(config);
    const at::NoGradGuard no_gradients;
    auto batch = random_batch(config, 5);
    const auto noise =
        sampling_noise(3, batch.numbers, batch.actions.sizes(), batch.actions.device());
    const auto errors = (model.sampled_actions(batch.observation, noise) - batch.actions).abs();
    const auto [all, counted] = action_error_sums(model, as_read(batch));
    EXPECT_EQ(counted, 5 * 4 * 3);
    EXPECT_NEAR(all / errors.narrow(2, 0, 3).sum().item<double>(), 1, 1e-5);
    // Of two samples the episode ends within the chunk.
    batch.action_pad[1].narrow(0, 1, 3) = true;
    batch.action_pad[4][3] = true;
    const auto [within, fewer] = action_error_sums(model, as_read(batch));
    EXPECT_EQ(fewer, counted - (3 + 1) * 3);
    const auto beyond =
        errors[1].narrow(0, 1, 3).narrow(1, 0, 3).sum() + errors[4][3].narrow(0, 0, 3).sum();
    EXPECT_NEAR((all - within) / beyond.item<double>(), 1, 1e-4);
    const auto [first, first_count] = action_error_sums(model, narrowed(as_read(batch), 0, 2));
    const auto [rest, rest_count] = action_error_sums(model, narrowed(as_read(batch), 2, 3));
    EXPECT_NEAR((first + rest) / within, 1, 1e-5);
    EXPECT_EQ(first_count + rest_count, fewer);
  }
}

TEST(Pi0, half_precision_is_near) {
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto batch = as_read(random_batch(config, 2));
    const at::NoGradGuard no_gradients;
    const double full = loss_of(random_model(config), batch, 0);
    const auto half = random_model(config, {.seed = 3, .precision = Precision::bf16});
    EXPECT_NEAR(loss_of(half, batch, 0) / full, 1, 0.03);
  }
}

/// Mean absolute error of sampled actions that say colour and word, and for pi0 the state.
double error_of_samples(const Pi0& model, const Pi0Config& config, const ColourSamples& source) {
  constexpr std::int64_t kFirst = 100'000, kCount = 64;  // nobody trained on them
  const auto batch = pi0_batch(read_batch(source, kFirst, kCount));
  const auto noise = flow_draw(9, 0, batch.actions.sizes(), at::kCPU).noise;
  const auto error = (model.sampled_actions(batch.observation, noise) - batch.actions).abs();
  const double colours = error.select(2, 0).mean().item<double>();
  const double states = config.is_pi05() ? 0 : error.select(2, 1).mean().item<double>();
  return std::max({colours, states, error.select(2, 2).mean().item<double>()});
}

TEST(Pi0, learns_to_act_by_what_it_sees_feels_and_is_told) {
  constexpr std::int64_t kBatch = 32;
  constexpr int kSteps = 300;
  const auto threads_before = at::get_num_threads();
  at::set_num_threads(1);  // so little work takes longer on several
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const ColourSamples source(config, 1 << 20);
    const Pi0 model(config, {.seed = 1});
    const double untrained = error_of_samples(model, config, source);
    const auto trained = trained_of(model);
    torch::optim::AdamW optimizer(trained, torch::optim::AdamWOptions(3e-3).weight_decay(0));
    for (int step = 0; step < kSteps; ++step) {
      const auto first = step * kBatch;
      optimizer.zero_grad();
      const auto loss = model.pass(read_batch(source, first, kBatch), first).loss;
      (loss / static_cast<double>(kBatch * config.values_of_chunk())).backward();
      optimizer.step();
    }
    const double error = error_of_samples(model, config, source);
    EXPECT_GT(untrained, 0.5);
    EXPECT_LT(error, 0.25) << untrained;
  }
  at::set_num_threads(threads_before);
}

}  // namespace
}  // namespace tj::trainer
