// What the seam promises to workloads that GPT-2 does not need: frozen tensors, buffers, tensors
// without a gradient, a second group of parameters and metrics, at each ZeRO stage. Ranks are
// threads with real connections between them.
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <cmath>

#include "tests/trainer/engine/gloo_ranks.h"
#include "tests/trainer/engine/whole_state.h"
#include "trainer/train/evaluation.h"
#include "trainer/train/learner.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/model.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kWidth = 6;
constexpr std::int64_t kSteps = 5;
constexpr double kLr = 0.05;

/// y = (x * scale) w, and for those ranks that have an image also + x v. The mean of x is kept.
class OddModel final : public Model {
 public:
  OddModel(const std::vector<TensorSpec>& specs, const ModelOptions& options,
           const ModelKeeper& keeper)
      : hooks_(keeper.hooks), tensors_(initial_tensors(specs, options, keeper)) {}

  PassSums pass(const Batch& batch, std::optional<std::int64_t>) const override {
    const auto& x = batch.at(0);
    {
      const at::NoGradGuard no_gradients;
      tensors_[3].lerp_(x.mean(0), 0.5);
    }
    auto y = in_block(hooks_, 0, [&] { return at::matmul(x * tensors_[2], tensors_[0]); });
    if (batch.size() > 1)
      y = in_block(hooks_, 1, [&] { return y + at::matmul(batch[1], tensors_[1]); });
    const auto loss = (y - 1).square().sum();
    return {.loss = loss, .metrics = {loss, y.sum()}};
  }
  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  BlockHooks* hooks_;
  std::vector<at::Tensor> tensors_;
};

class Odd final : public Workload {
 public:
  void configure(FlagReader&) override {}
  OpenedData open_data(const DataPaths&) override { return {}; }
  std::vector<TensorSpec> tensors() const override {
    const TensorInit normal{.kind = TensorInit::Kind::normal, .scale = 0.5};
    const TensorInit ones{.kind = TensorInit::Kind::ones};
    return {{.name = "w", .shape = {kWidth, 2}, .init = normal},
            {.name = "image.v", .shape = {kWidth, 2}, .init = normal},
            {.name = "scale", .shape = {kWidth}, .init = ones, .kind = TensorKind::frozen},
            {.name = "mean", .shape = {kWidth}, .kind = TensorKind::buffer},
            {.name = "teacher",
             .shape = {3},
             .init = ones,
             .kind = TensorKind::frozen,
             .is_saved = false}};
  }
  std::vector<ModelBlock> blocks() const override {
    return {{.tensors = {0, 2, 3, 4}}, {.tensors = {1}}};
  }
  std::vector<ParameterGroup> groups() const override {
    return {{.pattern = "image.*", .lr_scale = 2, .weight_decay = 0, .beta1 = 0.5, .beta2 = 0.99}};
  }
  bool may_leave_tensors_unused() const override { return true; }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<OddModel>(tensors(), options, keeper);
  }
  std::size_t metric_sums() const override { return 2; }
  std::vector<Metric> metrics() const override {
    return {{.name = "psnr", .label = "PSNR", .unit = "dB", .finish = [](auto sums, double weight) {
               return -10 * std::log10(sums[0] / weight);
             }}};
  }
  SampleCost cost() const override { return {}; }
  ModelShape shape() const override { return {}; }
  std::int64_t hidden_width() const override { return kWidth; }
};

TrainPlan plan_of(int stage, int passes) {
  TrainPlan plan;
  plan.accumulation = passes;
  plan.grad_clip = 0;
  plan.ema_decay = 0.9;
  plan.zero = {.stage = stage};
  return plan;
}

/// Rank 0 has an image in every step, the others in none; nobody in step 2.
Batch batch_of(int rank, std::int64_t step, std::int64_t pass) {
  auto generator =
      at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 * step + 10 * pass + rank) + 7);
  Batch batch{torch::randn({3, kWidth}, generator)};
  if (rank == 0 && step != 2) batch.push_back(torch::randn({3, kWidth}, generator));
  return batch;
}

struct Outcome {
  std::vector<double> losses, psnr, sums;
  Tensors model;  // as a checkpoint holds it
};

/// The same in one process, with torch's own optimizer: gradients added up rank by rank.
Outcome expected(int ranks, int passes) {
  const Odd odd;
  const OddModel model(odd.tensors(), {.seed = 1}, {});
  const auto& tensors = model.tensors();
  torch::optim::AdamW w({tensors[0]},
                        torch::optim::AdamWOptions(kLr).betas({0.9, 0.95}).weight_decay(0.1));
  torch::optim::AdamW v({tensors[1]},
                        torch::optim::AdamWOptions(2 * kLr).betas({0.5, 0.99}).weight_decay(0));
  Outcome outcome;
  auto mean = torch::zeros({kWidth});
  for (std::int64_t step = 0; step < kSteps; ++step) {
    w.zero_grad();
    v.zero_grad();
    const double weight = 3.0 * ranks * passes;
    double loss = 0, sum = 0;
    auto means = torch::zeros({kWidth});
    for (int rank = 0; rank < ranks; ++rank) {
      tensors[3].copy_(mean);
      for (int pass = 0; pass < passes; ++pass) {
        const auto sums = model.pass(batch_of(rank, step, pass), {});
        (sums.loss / weight).backward();
        loss += sums.loss.item<double>();
        sum += sums.metrics[1].item<double>();
      }
      means += tensors[3];
    }
    mean = means / ranks;
    for (const auto& tensor : {tensors[0], tensors[1]})
      if (!tensor.grad().defined()) tensor.mutable_grad() = torch::zeros_like(tensor);
    w.step();
    v.step();
    outcome.losses.push_back(loss / weight);
    outcome.psnr.push_back(-10 * std::log10(loss / weight));
    outcome.sums.push_back(sum);
  }
  outcome.model = {{"w", tensors[0].detach()},
                   {"image.v", tensors[1].detach()},
                   {"scale", tensors[2]},
                   {"mean", mean}};
  return outcome;
}

Outcome trained(int stage, int ranks, int passes) {
  const Odd odd;
  const auto plan = plan_of(stage, passes);
  Outcome outcome;
  on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
    auto of_rank = plan;
    of_rank.seed = 1;
    Learner learner(of_rank, odd, communicator, clock);
    learner.begin();
    const std::int64_t weight = 3 * ranks * passes;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (std::int64_t pass = 0; pass < passes; ++pass)
        learner.pass(batch_of(communicator.rank(), step, pass), 0, weight);
      const auto updated = learner.update(kLr, weight);
      if (communicator.rank() != 0) continue;
      outcome.losses.push_back(updated.loss);
      outcome.sums.push_back(updated.sums.metrics.at(1));
      const auto metrics = metric_values(odd.metrics(), updated.sums, static_cast<double>(weight));
      outcome.psnr.push_back(metrics.at(0).value);
    }
    const auto state = learner.state();
    EXPECT_EQ(state.optimizer.size(), 4U) << "moments of w and v alone";
    EXPECT_EQ(state.ema.size(), 2U);
    collect(state.model, "", communicator.rank(), outcome.model);
  });
  return outcome;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t step = 0; step < got.size(); ++step)
    EXPECT_NEAR(got[step], wanted[step], 1e-4 * (1 + std::abs(wanted[step]))) << "step " << step;
}

TEST(Seam, holds_what_a_workload_may_ask_for_at_each_stage_and_size) {
  for (const int ranks : {1, 2, 3}) {
    for (const int passes : {1, 2}) {
      const auto wanted = expected(ranks, passes);
      for (const int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE("stage " + std::to_string(stage) + ", " + std::to_string(ranks) + " ranks, " +
                     std::to_string(passes) + " passes");
        const auto got = trained(stage, ranks, passes);
        expect_near(got.losses, wanted.losses);
        expect_near(got.psnr, wanted.psnr);
        expect_near(got.sums, wanted.sums);
        ASSERT_EQ(got.model.size(), wanted.model.size());
        for (const auto& [name, tensor] : wanted.model)
          EXPECT_TRUE(torch::allclose(got.model.at(name), tensor.flatten(), 1e-4, 1e-5)) << name;
      }
    }
  }
}

TEST(Seam, a_plan_with_buffers_is_not_deterministic) {
  const Odd odd;
  auto plan = plan_of(0, 1);
  EXPECT_TRUE(settle_model(plan, odd));
  plan.model_name = "odd";
  plan.logical_shards = 4;
  const auto settled = settle_model(plan, odd);
  ASSERT_FALSE(settled);
  EXPECT_EQ(describe(settled.error()),
            "--deterministic: is not possible with odd, whose buffers are means over what each "
            "rank has seen");
}

TEST(Seam, ranks_that_share_buffers_in_each_step_do_not_train_apart) {
  const Odd odd;
  auto plan = plan_of(0, 1);
  plan.model_name = "odd";
  plan.sync.kind = SyncKind::late;
  EXPECT_TRUE(settle_model(plan, odd));
  plan.sync.kind = SyncKind::local;
  const auto settled = settle_model(plan, odd);
  ASSERT_FALSE(settled);
  EXPECT_EQ(describe(settled.error()),
            "--sync: is \"local\"; with odd it must be step or late, as its buffers are means over "
            "what all ranks see in each step");
}

}  // namespace
}  // namespace tj::trainer
