// Optimizer, clipping, averages, loss scale and schedules beside PyTorch's and transformers' own
// over 100 steps. tests/interop/make_golden.py made the files and defines the problem; it is
// written here a second time.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/places.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/train/adamw.h"
#include "trainer/train/gradients.h"
#include "trainer/train/schedule.h"
#include "trainer/values/loss_scale.h"

namespace tj::trainer {
namespace {

const std::string kFolder = source_dir() + "/tests/golden/trainer/";
const std::vector<std::vector<std::int64_t>> kShapes = {{3, 5}, {7}, {2, 4, 3}, {1}, {16, 8}};
constexpr std::int64_t kSteps = 100;
constexpr std::int64_t kGrowthInterval = 7;
constexpr double kLr = 0.01, kDecay = 0.1, kNormMax = 1.0, kEmaDecay = 0.98;
// The fused kernel rounds in another order than PyTorch's step by step: 1e-7 of a weight in each
// step, of 100.
constexpr double kRelative = 1e-5, kAbsolute = 2e-6;

at::Tensor ramp(std::size_t tensor) {
  std::int64_t count = 1;
  for (const auto extent : kShapes[tensor]) count *= extent;
  return torch::arange(count, torch::kInt64) + 1000 * static_cast<std::int64_t>(tensor);
}

std::vector<at::Tensor> initial_weights() {
  std::vector<at::Tensor> weights;
  for (std::size_t tensor = 0; tensor < kShapes.size(); ++tensor) {
    const auto whole = (ramp(tensor) * 37).remainder(101) - 50;
    weights.push_back((whole.to(torch::kFloat32) / 64).view(kShapes[tensor]).requires_grad_(true));
  }
  return weights;
}

/// `step` from 1.
at::Tensor gradient(std::size_t tensor, std::int64_t step) {
  const auto index = ramp(tensor);
  const auto whole = (index * 31 + (index * step).remainder(13) + step * 17).remainder(127) - 63;
  const double factor = step % 3 == 0 ? 8 : 1;
  return (whole.to(torch::kFloat32) / 2048 * factor).view(kShapes[tensor]);
}

std::vector<at::Tensor> put_gradients(const std::vector<at::Tensor>& weights, std::int64_t step,
                                      double scale = 1) {
  std::vector<at::Tensor> gradients;
  for (std::size_t tensor = 0; tensor < weights.size(); ++tensor) {
    gradients.push_back(gradient(tensor, step) * scale);
    weights[tensor].mutable_grad() = gradients.back();
  }
  return gradients;
}

std::vector<UpdateRule> rules_of(const std::vector<at::Tensor>& weights) {
  std::vector<UpdateRule> rules;
  for (const auto& weight : weights)
    rules.push_back({.weight_decay = weight.dim() >= 2 ? kDecay : 0});
  return rules;
}

class PyTorchGolden : public testing::Test {
 protected:
  void SetUp() override {
    auto file = SafetensorsFile::open(kFolder + "optimizer.safetensors");
    ASSERT_TRUE(file) << describe(file.error());
    file_.emplace(std::move(*file));
    std::ifstream(kFolder + "optimizer.json") >> numbers_;
  }

  void expect_equal(const std::string& name, std::int64_t step,
                    const std::vector<at::Tensor>& ours) const {
    for (std::size_t tensor = 0; tensor < ours.size(); ++tensor) {
      char key[64];
      std::snprintf(key, sizeof key, "%s.%03d.%zu", name.c_str(), static_cast<int>(step), tensor);
      const auto* const theirs = file_->find(key);
      ASSERT_NE(theirs, nullptr) << key;
      ASSERT_EQ(theirs->shape, ours[tensor].sizes().vec()) << key;
      const auto wanted = torch::empty(theirs->shape, torch::kFloat32);
      const auto read = file_->read_floats(
          *theirs, {wanted.data_ptr<float>(), static_cast<std::size_t>(wanted.numel())});
      ASSERT_TRUE(read) << describe(read.error());
      EXPECT_TRUE(torch::allclose(ours[tensor], wanted, kRelative, kAbsolute))
          << key << ": differs by " << (ours[tensor].detach() - wanted).abs().max().item<double>();
    }
  }

  std::optional<SafetensorsFile> file_;
  nlohmann::json numbers_;
};

bool is_shown(std::int64_t step) { return step == 1 || step == 10 || step == kSteps; }

TEST_F(PyTorchGolden, adamw_with_and_without_decay) {
  const auto weights = initial_weights();
  AdamW optimizer(weights, rules_of(weights));
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    put_gradients(weights, step);
    optimizer.step(kLr);
    if (!is_shown(step)) continue;
    expect_equal("adamw.weight", step, weights);
    expect_equal("adamw.exp_avg", step, optimizer.first_moments());
    expect_equal("adamw.exp_avg_sq", step, optimizer.second_moments());
  }
}

TEST_F(PyTorchGolden, clipping_and_averages) {
  const auto weights = initial_weights();
  AdamW optimizer(weights, rules_of(weights));
  std::vector<at::Tensor> averages;
  for (const auto& weight : weights) averages.push_back(weight.detach().clone());
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const auto gradients = put_gradients(weights, step);
    const double norm = clip_gradients(gradients, kNormMax).item<double>();
    EXPECT_NEAR(norm, numbers_["norms"][static_cast<std::size_t>(step - 1)], 1e-6 * norm) << step;
    if (step == 1 || step == 3) expect_equal("clipped.gradient", step, gradients);
    optimizer.step(kLr);
    update_averages(averages, weights, kEmaDecay);
    if (!is_shown(step)) continue;
    expect_equal("clipped.weight", step, weights);
    expect_equal("clipped.average", step, averages);
  }
}

TEST_F(PyTorchGolden, loss_scale_and_skipped_steps) {
  const std::set<std::int64_t> overflows = {5, 6, 23, 60, 61, 62, 99};
  const auto& theirs = numbers_["scaler"];
  const auto weights = initial_weights();
  AdamW optimizer(weights, rules_of(weights));
  LossScale loss_scale;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const auto index = static_cast<std::size_t>(step - 1);
    EXPECT_EQ(loss_scale.scale, theirs["scales"][index]) << step;
    const auto gradients = put_gradients(weights, step, loss_scale.scale);
    if (overflows.contains(step)) {
      gradients[static_cast<std::size_t>(step) % gradients.size()].view({-1})[0] =
          std::numeric_limits<float>::infinity();
    }
    const bool is_finite = unscale_gradients(gradients, loss_scale.scale).item<float>() == 0;
    EXPECT_EQ(is_finite, theirs["taken"][index]) << step;
    if (is_finite) optimizer.step(kLr);
    loss_scale.update(is_finite, kGrowthInterval);
  }
  EXPECT_EQ(loss_scale.scale, theirs["last"]);
  expect_equal("scaled.weight", kSteps, weights);
}

// transformers' warm-up begins at a rate of 0, ours one step later in it; from the top on the steps
// are the same. theirs[kSteps - 1] is its last rate: the file was made for kSteps - 1 steps.
TEST_F(PyTorchGolden, schedules) {
  constexpr std::int64_t kWarmup = 10;
  const std::pair<const char*, Schedule> cases[] = {
      {"cosine", {.kind = ScheduleKind::cosine, .lr = kLr, .min_lr = 0}},
      {"cosine_with_min", {.kind = ScheduleKind::cosine, .lr = kLr, .min_lr = kLr / 10}},
      {"linear", {.kind = ScheduleKind::linear, .lr = kLr, .min_lr = 0}},
      {"constant", {.kind = ScheduleKind::constant, .lr = kLr, .min_lr = 0}},
  };
  for (auto [name, schedule] : cases) {
    schedule.warmup_steps = kWarmup;
    schedule.steps = kSteps;
    const auto& theirs = numbers_["schedules"][name];
    ASSERT_EQ(theirs.size(), kSteps + 1) << name;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto index = static_cast<std::size_t>(step < kWarmup ? step + 1 : step);
      EXPECT_NEAR(learning_rate(schedule, step), theirs[index], 1e-12) << name << " " << step;
    }
  }
}

}  // namespace
}  // namespace tj::trainer
