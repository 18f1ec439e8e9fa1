#include "trainer/train/learner.h"

#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/train/gradients.h"
#include "trainer/train/zero/zero.h"

namespace tj::trainer {
namespace {

ModelOptions options_of(const TrainPlan& plan) {
  return {
      .seed = plan.seed, .precision = plan.precision, .recompute = plan.recompute, .gpu = plan.gpu};
}

std::vector<UpdateRule> rules_of(const TrainPlan& plan, const Workload& workload) {
  auto rules = update_rules(workload.tensors(), plan.optimizer.weight_decay, plan.groups);
  TORCH_CHECK(rules, "a plan is made with groups that match");
  return std::move(*rules);
}

/// `count` samples of the batch.
Batch samples_of(const Batch& batch, std::int64_t begin, std::int64_t count) {
  Batch part;
  for (const auto& tensor : batch) part.push_back(tensor.narrow(0, begin, count));
  return part;
}

at::ScalarType type_of(Precision precision) {
  if (precision == Precision::fp32) return at::kFloat;
  return precision == Precision::bf16 ? at::kBFloat16 : at::kHalf;
}

/// Under ZeRO the weights the model computes with are of the precision of the passes, and the
/// float32 ones are sharded. Not so where the bits must be those of stage 0.
ZeroKind kind_of(const TrainPlan& plan) {
  const bool is_deterministic = plan.logical_shards > 0;
  ZeroKind kind{.stage = plan.zero.stage};
  if (plan.gpu) kind.device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(*plan.gpu));
  if (is_deterministic) return kind;
  kind.weights = type_of(plan.precision);
  // Sums over passes need more than the eight bits of a bfloat16, and fp16 more range.
  if (plan.precision == Precision::bf16 && plan.accumulation == 1) kind.gradients = kind.weights;
  return kind;
}

std::unique_ptr<Zero> make_zero(const TrainPlan& plan, const Workload& workload,
                                Communicator& communicator) {
  if (plan.zero.stage == 0) return nullptr;
  return std::make_unique<Zero>(ZeroInputs{.tensors = workload.tensors(),
                                           .is_frozen = {},
                                           .blocks = workload.blocks(),
                                           .rules = rules_of(plan, workload),
                                           .options = plan.zero,
                                           .optimizer = plan.optimizer,
                                           .kind = kind_of(plan),
                                           .is_deterministic = plan.logical_shards > 0,
                                           .has_averages = plan.ema_decay > 0},
                                communicator);
}

ModelKeeper keeper_of(Zero* zero) {
  if (zero == nullptr) return {};
  return {.place = [zero](std::size_t index,
                          const at::Tensor& initial) { return zero->place(index, initial); },
          .hooks = zero};
}

}  // namespace

Learner::Learner(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                 PhaseClock& clock)
    : plan_(plan),
      comm_(communicator),
      clock_(clock),
      zero_(make_zero(plan, workload, communicator)),
      model_(workload.make_model(options_of(plan), keeper_of(zero_.get()))),
      shard_losses_(static_cast<std::size_t>(std::max<std::int64_t>(1, plan.logical_shards))) {
  if (zero_) return;
  optimizer_ =
      std::make_unique<AdamW>(model_->parameters(), plan.optimizer, rules_of(plan, workload));
  if (plan.ema_decay == 0) return;
  for (const auto& parameter : model_->parameters())
    averages_.push_back(parameter.detach().clone());
}

Learner::~Learner() = default;

void Learner::begin() {
  if (zero_) {
    zero_->begin();
  } else if (plan_.logical_shards > 0) {
    shard_tree_.emplace(model_->parameters());
  } else {
    if (comm_.world_size() > 1) gradient_watch_.emplace(model_->parameters(), clock_);
    sync_ = comm_.synchronise(model_->parameters(), model_->names());
  }
}

void Learner::pass(const Batch& batch, std::int64_t first_sample, std::int64_t weight_of_step) {
  const double scale = plan_.precision == Precision::fp16 ? loss_scale_.scale : 1.0;
  const double factor = scale / static_cast<double>(weight_of_step);
  if (plan_.logical_shards > 0) {
    pass_by_shards(batch, first_sample, factor);
  } else {
    pass_overlapped(batch, first_sample, factor);
  }
  ++passes_done_;
}

void Learner::pass_overlapped(const Batch& batch, std::int64_t first_sample, double factor) {
  const bool is_last = passes_done_ + 1 == plan_.accumulation;
  if (zero_) zero_->begin_pass(is_last);
  if (sync_ && is_last) sync_->before_last_pass();
  const auto loss = forward(batch, first_sample);
  // The sync takes the mean over the ranks; what is wanted is the sum.
  const auto scaled = loss * (sync_ ? factor * comm_.world_size() : factor);
  try {
    std::optional<GradientWatch::Pass> watched;
    if (gradient_watch_) watched.emplace(*gradient_watch_, is_last);
    scaled.backward();
  } catch (const std::exception& failure) {
    comm_.check_peers(failure.what());
    throw;
  }
  if (zero_) zero_->end_pass();
  shard_losses_[0] += loss.item<double>();
}

at::Tensor Learner::forward(const Batch& batch, std::int64_t first_sample) {
  const auto timed = clock_.time(Section::forward);
  return model_->loss_sum(batch, first_sample);
}

void Learner::pass_by_shards(const Batch& batch, std::int64_t first_sample, double factor) {
  const std::int64_t rows = plan_.batch_size / plan_.logical_shards;
  const std::int64_t shards = plan_.micro_batch / rows;
  const std::int64_t first = first_shard(shards);
  auto& tree = zero_ ? *zero_->shard_tree() : *shard_tree_;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    tree.clear();
    if (zero_) zero_->begin_pass(/*is_last=*/false);
    const auto loss = forward(samples_of(batch, shard * rows, rows), first_sample + shard * rows);
    (loss * factor).backward();
    if (zero_) zero_->end_pass();
    tree.add_shard();
    shard_losses_[static_cast<std::size_t>(first + shard)] = loss.item<double>();
  }
}

/// Of the pass that comes next, by its place in the batch.
std::int64_t Learner::first_shard(std::int64_t shards_of_pass) const {
  return (comm_.rank() * plan_.accumulation + passes_done_) * shards_of_pass;
}

void Learner::measure(const Batch& batch) {
  const at::NoGradGuard no_gradients;
  const bool is_deterministic = plan_.logical_shards > 0;
  const std::int64_t rows =
      is_deterministic ? plan_.batch_size / plan_.logical_shards : plan_.micro_batch;
  const std::int64_t shards = plan_.micro_batch / rows;
  const std::int64_t first = is_deterministic ? first_shard(shards) : 0;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    if (zero_) zero_->begin_pass(/*is_last=*/false);
    const auto loss = model_->loss_sum(samples_of(batch, shard * rows, rows), {});
    if (zero_) zero_->end_forward();
    shard_losses_[static_cast<std::size_t>(first + shard)] += loss.item<double>();
  }
  passes_done_ = (passes_done_ + 1) % plan_.accumulation;
}

double Learner::take_measured() {
  const double sum = loss_over_ranks();
  std::ranges::fill(shard_losses_, 0.0);
  passes_done_ = 0;
  return sum;
}

UpdateOutcome Learner::update(double lr, std::int64_t weight_of_step) {
  TORCH_CHECK(passes_done_ == plan_.accumulation, "an update follows all passes of a step");
  are_own_losses_finite_ =
      std::ranges::all_of(shard_losses_, [](double loss) { return std::isfinite(loss); });
  UpdateOutcome outcome{.loss = loss_over_ranks() / static_cast<double>(weight_of_step)};
  if (zero_) zero_->finish_gradients();
  if (shard_tree_) shard_tree_->sum(comm_);
  if (state_bytes_ == 0) state_bytes_ = held_bytes();
  check_gradients(outcome);
  if (outcome.is_applied) apply(lr);
  clear_gradients();
  return outcome;
}

void Learner::check_gradients(UpdateOutcome& outcome) {
  if (plan_.precision == Precision::fp16) {
    outcome.is_applied = unscale();
    loss_scale_.update(outcome.is_applied);
  }
  if (!outcome.is_applied) return;
  outcome.gradient_norm = clip();
  // What is not finite must not reach the weights: they are what can still be saved.
  outcome.is_applied = std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm);
}

bool Learner::unscale() {
  return zero_ ? zero_->unscale(loss_scale_.scale)
               : unscale_gradients(gradients(), loss_scale_.scale);
}

double Learner::clip() {
  if (zero_) return zero_->clip(plan_.grad_clip);
  if (!shard_tree_) return clip_gradients(gradients(), plan_.grad_clip);
  return clip_gradients_exactly(gradients(), plan_.grad_clip);
}

void Learner::apply(double lr) {
  if (zero_) return zero_->update(lr, plan_.ema_decay);
  optimizer_->step(lr);
  if (!averages_.empty()) update_averages(averages_, model_->parameters(), plan_.ema_decay);
}

bool Learner::is_finite_here() const {
  if (!are_own_losses_finite_) return false;
  if (plan_.zero.stage == 3) return true;  // between two passes no block has its weights
  return std::ranges::all_of(model_->parameters(), [](const at::Tensor& parameter) {
    return at::isfinite(parameter.detach()).all().item<bool>();
  });
}

double Learner::loss_over_ranks() {
  // Every shard's sum was made by one rank, so that the sum over ranks keeps its bits.
  const auto sums = sum_over_ranks(comm_, shard_losses_);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void Learner::clear_gradients() {
  std::ranges::fill(shard_losses_, 0.0);
  passes_done_ = 0;
  if (zero_) return zero_->clear();
  if (shard_tree_) return;  // each shard begins with zeros anyway
  if (comm_.world_size() == 1) {
    // The next backward then puts its results there, instead of adding them to zeros.
    for (const auto& parameter : model_->parameters()) parameter.mutable_grad().reset();
  } else {
    // In place: the gradients are windows on the buckets of the Reducer.
    at::_foreach_zero_(gradients());
  }
}

std::vector<at::Tensor> Learner::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& parameter : model_->parameters()) all.push_back(parameter.grad());
  return all;
}

StateTensors Learner::state() const {
  if (zero_) return zero_->state();
  const auto& names = model_->names();
  StateTensors state;
  append_tensors(state.model, names, model_->parameters());
  append_tensors(state.optimizer, names, optimizer_->first_moments(), "exp_avg.");
  append_tensors(state.optimizer, names, optimizer_->second_moments(), "exp_avg_sq.");
  if (plan_.ema_decay > 0) append_tensors(state.ema, names, averages_);
  return state;
}

std::int64_t Learner::optimizer_steps() const {
  return zero_ ? zero_->step_count() : optimizer_->step_count();
}

void Learner::set_optimizer_steps(std::int64_t steps) {
  if (zero_) return zero_->set_step_count(steps);
  optimizer_->set_step_count(steps);
}

std::int64_t Learner::held_bytes() const {
  if (zero_) return zero_->held_bytes();
  auto all = gradients();
  for (const auto* const list : {&model_->parameters(), &optimizer_->first_moments(),
                                 &optimizer_->second_moments(), &averages_})
    all.insert(all.end(), list->begin(), list->end());
  return distinct_bytes(all);
}

}  // namespace tj::trainer
