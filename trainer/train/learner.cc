#include "trainer/train/learner.h"

#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "trainer/comm/agreement.h"
#include "trainer/train/gradients.h"

namespace tj::trainer {
namespace {

Gpt2Compute compute_of(const TrainPlan& plan) {
  return {.precision = plan.precision,
          .dropout = plan.dropout,
          .seed = plan.seed,
          .recompute = plan.recompute,
          .ignored_token = plan.ignored_token,
          .gpu = plan.gpu};
}

std::vector<UpdateRule> rules_of(const TrainPlan& plan) {
  auto rules = update_rules(gpt2_tensors(plan.model), plan.optimizer.weight_decay, plan.groups);
  TORCH_CHECK(rules, "a plan is made with groups that match");
  return std::move(*rules);
}

}  // namespace

Learner::Learner(const TrainPlan& plan, Communicator& communicator, PhaseClock& clock)
    : plan_(plan),
      comm_(communicator),
      clock_(clock),
      model_(plan.model, plan.seed, compute_of(plan)),
      optimizer_(model_.parameters(), plan.optimizer, rules_of(plan)),
      shard_losses_(static_cast<std::size_t>(std::max<std::int64_t>(1, plan.logical_shards))) {
  if (plan.ema_decay == 0) return;
  for (const auto& parameter : model_.parameters()) averages_.push_back(parameter.detach().clone());
}

Learner::~Learner() = default;

void Learner::begin() {
  if (plan_.logical_shards > 0) {
    shard_tree_.emplace(model_.parameters());
  } else {
    if (comm_.world_size() > 1) last_gradient_.emplace(model_.parameters());
    sync_ = comm_.synchronise(model_.parameters(), model_.names());
  }
}

void Learner::pass(const at::Tensor& tokens, std::int64_t first_sample,
                   std::int64_t targets_of_step) {
  const double scale = plan_.precision == Precision::fp16 ? loss_scale_.scale : 1.0;
  const double factor = scale / static_cast<double>(targets_of_step);
  if (shard_tree_) {
    pass_by_shards(tokens, first_sample, factor);
  } else {
    pass_overlapped(tokens, first_sample, factor);
  }
  ++passes_done_;
}

void Learner::pass_overlapped(const at::Tensor& tokens, std::int64_t first_sample, double factor) {
  if (passes_done_ + 1 == plan_.accumulation) sync_->before_last_pass();
  const auto loss = forward(tokens, first_sample);
  // The sync takes the mean over the ranks; what is wanted is the sum.
  const auto scaled = loss * (factor * comm_.world_size());
  try {
    scaled.backward();
    if (last_gradient_)  // the rest of backward waited for the others
      const PhaseClock::Scope waited(clock_, Section::collective, last_gradient_->at());
  } catch (const std::exception& failure) {
    comm_.check_peers(failure.what());
    throw;
  }
  shard_losses_[0] += loss.item<double>();
}

at::Tensor Learner::forward(const at::Tensor& tokens, std::int64_t first_sample) {
  const auto timed = clock_.time(Section::forward);
  return model_.loss_sum(tokens, first_sample);
}

void Learner::pass_by_shards(const at::Tensor& tokens, std::int64_t first_sample, double factor) {
  const std::int64_t rows = plan_.batch_size / plan_.logical_shards;
  const std::int64_t shards = tokens.size(0) / rows;
  const std::int64_t first_shard = (comm_.rank() * plan_.accumulation + passes_done_) * shards;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    shard_tree_->clear();
    const auto loss = forward(tokens.narrow(0, shard * rows, rows), first_sample + shard * rows);
    (loss * factor).backward();
    shard_tree_->add_shard();
    shard_losses_[static_cast<std::size_t>(first_shard + shard)] = loss.item<double>();
  }
}

UpdateOutcome Learner::update(double lr, std::int64_t targets_of_step) {
  TORCH_CHECK(passes_done_ == plan_.accumulation, "an update follows all passes of a step");
  UpdateOutcome outcome{.loss = step_loss(targets_of_step)};
  if (shard_tree_) shard_tree_->sum(comm_);
  const auto all = gradients();
  if (plan_.precision == Precision::fp16) {
    outcome.is_applied = unscale_gradients(all, loss_scale_.scale);
    loss_scale_.update(outcome.is_applied);
  }
  if (outcome.is_applied) {
    outcome.gradient_norm = clip_gradients(all, plan_.grad_clip);
    // What is not finite must not reach the weights: they are what can still be saved.
    outcome.is_applied = std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm);
  }
  if (outcome.is_applied) {
    optimizer_.step(lr);
    if (!averages_.empty()) update_averages(averages_, model_.parameters(), plan_.ema_decay);
  }
  clear_gradients();
  return outcome;
}

double Learner::step_loss(std::int64_t targets_of_step) {
  // Every shard's sum was made by one rank, so that the sum over ranks keeps its bits.
  const auto sums = sum_over_ranks(comm_, shard_losses_);
  return std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(targets_of_step);
}

void Learner::clear_gradients() {
  std::ranges::fill(shard_losses_, 0.0);
  passes_done_ = 0;
  if (shard_tree_) return;  // each shard begins with zeros anyway
  if (comm_.world_size() == 1) {
    // The next backward then puts its results there, instead of adding them to zeros.
    for (const auto& parameter : model_.parameters()) parameter.mutable_grad().reset();
  } else {
    // In place: the gradients are windows on the buckets of the Reducer.
    at::_foreach_zero_(gradients());
  }
}

std::vector<at::Tensor> Learner::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& parameter : model_.parameters()) all.push_back(parameter.grad());
  return all;
}

}  // namespace tj::trainer
