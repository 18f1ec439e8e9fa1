// The smallest training that ranks can share: a line through points, with AdamW by hand to compare
// with. Includes torch.
#pragma once
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/trainer/engine/gloo_ranks.h"
#include "trainer/train/learner.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/model.h"

namespace tj::trainer {

constexpr std::int64_t kLineWidth = 6;
constexpr std::int64_t kLineRows = 3;  // samples of a pass
constexpr double kLineLr = 0.05;

/// y = x w + b, which should be 1.
class LineModel final : public Model {
 public:
  LineModel(const std::vector<TensorSpec>& specs, const ModelOptions& options,
            const ModelKeeper& keeper)
      : tensors_(initial_tensors(specs, options, keeper)) {}
  PassSums pass(const Batch& batch, std::optional<std::int64_t>) const override {
    auto loss = (at::matmul(batch.at(0), tensors_[0]) + tensors_[1] - 1).square().sum();
    // A loss that is finite, of a gradient that is not.
    if (batch.size() > 1) loss = loss + (tensors_[0] * 0).sum().sqrt();
    return {.loss = loss};
  }
  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  std::vector<at::Tensor> tensors_;
};

class Lines final : public Workload {
 public:
  void configure(FlagReader&) override {}
  OpenedData open_data(const DataPaths&) override { return {}; }
  std::vector<TensorSpec> tensors() const override {
    return {{.name = "w",
             .shape = {kLineWidth, 2},
             .init = {.kind = TensorInit::Kind::normal, .scale = 0.5}},
            {.name = "b", .shape = {2}}};
  }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<LineModel>(tensors(), options, keeper);
  }
  SampleCost cost() const override { return {}; }
  ModelShape shape() const override { return {}; }
  std::int64_t hidden_width() const override { return kLineWidth; }
};

inline TrainPlan line_plan(const SyncPlan& sync, std::int64_t passes = 1) {
  TrainPlan plan;
  plan.accumulation = passes;
  plan.grad_clip = 0;
  plan.seed = 1;
  plan.sync = sync;
  plan.schedule.steps = 1000;
  return plan;
}

inline Batch line_batch(int rank, std::int64_t step, std::int64_t pass) {
  auto generator =
      at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 * step + 10 * pass + rank) + 7);
  return {torch::randn({kLineRows, kLineWidth}, generator)};
}

using LineBatches = std::function<Batch(int rank, std::int64_t step, std::int64_t pass)>;

/// One step of a rank; `step` from 0.
inline UpdateOutcome line_step(Learner& learner, const TrainPlan& plan,
                               const Communicator& communicator, std::int64_t step,
                               const LineBatches& batches = line_batch) {
  const std::int64_t weight = kLineRows * communicator.world_size() * plan.accumulation;
  for (std::int64_t pass = 0; pass < plan.accumulation; ++pass)
    learner.pass(batches(communicator.rank(), step, pass), 0, weight);
  const auto outcome = learner.update(kLineLr, weight);
  if (outcome.is_applied) learner.end_step(step + 1);
  return outcome;
}

/// What one rank of a reference has.
struct LineRank {
  std::vector<at::Tensor> weights, first, second;
  int updates = 0;

  static LineRank initial() {
    LineRank rank;
    const LineModel model(Lines().tensors(), {.seed = 1}, {});
    for (const auto& tensor : model.tensors()) {
      rank.weights.push_back(tensor.detach().clone());
      rank.first.push_back(torch::zeros_like(rank.weights.back()));
      rank.second.push_back(torch::zeros_like(rank.weights.back()));
    }
    return rank;
  }

  /// Of the sum of the losses of the passes, divided by `weight`.
  std::vector<at::Tensor> gradients(int of_rank, std::int64_t step, std::int64_t passes,
                                    double weight) const {
    std::vector<at::Tensor> leaves;
    for (const auto& tensor : weights) leaves.push_back(tensor.clone().requires_grad_());
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const auto x = line_batch(of_rank, step, pass).at(0);
      ((at::matmul(x, leaves[0]) + leaves[1] - 1).square().sum() / weight).backward();
    }
    return {leaves[0].grad(), leaves[1].grad()};
  }

  /// Loshchilov and Hutter 2019, algorithm 2; only the matrix decays.
  void update(const std::vector<at::Tensor>& gradient, const UpdateRule& rule) {
    ++updates;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double decay = weights[i].dim() > 1 ? rule.weight_decay : 0;
      first[i] = rule.beta1 * first[i] + (1 - rule.beta1) * gradient[i];
      second[i] = rule.beta2 * second[i] + (1 - rule.beta2) * gradient[i].square();
      const auto mean = first[i] / (1 - std::pow(rule.beta1, updates));
      const auto spread = (second[i] / (1 - std::pow(rule.beta2, updates))).sqrt() + 1e-8;
      weights[i] = weights[i] * (1 - kLineLr * decay) - kLineLr * mean / spread;
    }
  }
};

/// What some steps of several ranks have left of rank 0, and of the others' weights.
struct LineOutcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<at::Tensor>> weights;  // by rank
};

inline LineOutcome train_lines(const TrainPlan& plan, int ranks, std::int64_t steps) {
  const Lines lines;
  LineOutcome outcome;
  outcome.weights.resize(static_cast<std::size_t>(ranks));
  on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(plan, lines, communicator, clock);
    learner.begin();
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto stepped = line_step(learner, plan, communicator, step);
      if (communicator.rank() != 0) continue;
      outcome.losses.push_back(stepped.loss);
      outcome.norms.push_back(stepped.gradient_norm);
    }
    learner.prepare_save();  // nothing is in flight any more
    for (const auto& tensor : learner.tensors())
      outcome.weights[static_cast<std::size_t>(communicator.rank())].push_back(
          tensor.detach().clone());
  });
  return outcome;
}

inline bool are_near(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!torch::allclose(got.at(i), wanted[i], /*rtol=*/1e-4, /*atol=*/1e-5)) return false;
  return true;
}

inline bool are_same(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!got.at(i).equal(wanted[i])) return false;
  return true;
}

/// All that a checkpoint of `from` would bring to `to`, group by group; `left_out` stays.
inline void copy_state(const StateTensors& from, const StateTensors& to,
                       const GroupStems& left_out) {
  const at::NoGradGuard no_gradients;
  const auto copy = [&](const char* stem, const auto& source, const auto& target) {
    if (left_out.contains(stem)) return;
    for (std::size_t i = 0; i < source.size(); ++i)
      if (source[i].tensor.defined()) target[i].tensor.detach().copy_(source[i].tensor.detach());
  };
  copy(kModelStem, from.model, to.model);
  copy(kOptimizerStem, from.optimizer, to.optimizer);
  copy(kSyncStem, from.sync, to.sync);
  copy(kRanksStem, from.ranks, to.ranks);
  copy(kRoundStem, from.round, to.round);
}

/// The weights of all ranks after `steps`, with all state put into a new learner after `at` of
/// them.
inline LineOutcome train_lines_resumed(const TrainPlan& plan, int ranks, std::int64_t at,
                                       std::int64_t steps) {
  const Lines lines;
  LineOutcome outcome;
  outcome.weights.resize(static_cast<std::size_t>(ranks));
  on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner first(plan, lines, communicator, clock);
    first.begin();
    for (std::int64_t step = 0; step < at; ++step) line_step(first, plan, communicator, step);
    const auto left_out = first.prepare_save();
    Learner second(plan, lines, communicator, clock);
    copy_state(first.state(), second.state(), left_out);
    GroupStems read{kModelStem, kOptimizerStem};
    for (const char* const stem : {kSyncStem, kRanksStem, kRoundStem})
      if (!left_out.contains(stem)) read.insert(stem);
    second.set_optimizer_steps(first.optimizer_steps());
    second.begin(read);
    for (std::int64_t step = at; step < steps; ++step) line_step(second, plan, communicator, step);
    second.prepare_save();
    for (const auto& tensor : second.tensors())
      outcome.weights[static_cast<std::size_t>(communicator.rank())].push_back(
          tensor.detach().clone());
  });
  return outcome;
}

}  // namespace tj::trainer
