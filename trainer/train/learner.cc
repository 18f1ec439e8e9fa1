#include "trainer/train/learner.h"

#include <torch/torch.h>

#include <cmath>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

ModelOptions options_of(const TrainPlan& plan) {
  return {
      .seed = plan.seed, .precision = plan.precision, .recompute = plan.recompute, .gpu = plan.gpu};
}

/// `count` samples of the batch.
Batch samples_of(const Batch& batch, std::int64_t begin, std::int64_t count) {
  Batch part;
  for (const auto& tensor : batch) part.push_back(tensor.narrow(0, begin, count));
  return part;
}

std::vector<at::Tensor> of_kind(TensorKind kind, const std::vector<TensorSpec>& specs,
                                const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> chosen;
  for (std::size_t index = 0; index < specs.size(); ++index)
    if (specs[index].kind == kind) chosen.push_back(tensors[index]);
  return chosen;
}

}  // namespace

Learner::Learner(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                 PhaseClock& clock)
    : plan_(plan),
      comm_(communicator),
      clock_(clock),
      specs_(workload.tensors()),
      parallel_(make_data_parallel(plan, workload, communicator, clock)),
      model_(workload.make_model(options_of(plan), parallel_->keeper())),
      buffers_(of_kind(TensorKind::buffer, specs_, model_->tensors())),
      sums_(torch::zeros({std::max<std::int64_t>(1, plan.logical_shards),
                          1 + static_cast<std::int64_t>(workload.metric_sums())},
                         at::TensorOptions().dtype(at::kDouble).device(device_of(plan.gpu)))) {
  parallel_->adopt(of_kind(TensorKind::trained, specs_, model_->tensors()));
}

Learner::~Learner() = default;

void Learner::begin() { parallel_->begin(); }

void Learner::pass(const Batch& batch, std::int64_t first_sample, std::int64_t weight_of_step) {
  const double scale = plan_.precision == Precision::fp16 ? loss_scale_.scale : 1.0;
  const double factor = scale / static_cast<double>(weight_of_step);
  if (auto* const tree = parallel_->tree()) {
    pass_by_logical_shards(*tree, batch, first_sample, factor);
  } else {
    pass_whole(batch, first_sample, factor);
  }
  ++passes_done_;
}

void Learner::pass_whole(const Batch& batch, std::int64_t first_sample, double factor) {
  const bool is_last = passes_done_ + 1 == plan_.accumulation;
  parallel_->begin_pass(is_last);
  const auto sums = forward(batch, first_sample);
  parallel_->backward(sums.loss, factor, is_last);
  add_sums(0, sums);
}

PassSums Learner::forward(const Batch& batch, std::int64_t first_sample) {
  const auto timed = clock_.time(Section::forward);
  return model_->pass(batch, first_sample);
}

void Learner::pass_by_logical_shards(LogicalShardTree& tree, const Batch& batch,
                                     std::int64_t first_sample, double factor) {
  const std::int64_t rows = plan_.batch_size / plan_.logical_shards;
  const std::int64_t logical_shards = plan_.micro_batch / rows;
  const std::int64_t first = first_logical_shard(logical_shards);
  for (std::int64_t index = 0; index < logical_shards; ++index) {
    tree.clear();
    parallel_->begin_pass(/*is_last=*/false);
    const auto sums = forward(samples_of(batch, index * rows, rows), first_sample + index * rows);
    parallel_->backward(sums.loss, factor, /*is_last=*/false);
    tree.add_logical_shard();
    add_sums(first + index, sums);
  }
}

/// Of the pass that comes next, by its place in the batch.
std::int64_t Learner::first_logical_shard(std::int64_t logical_shards_of_pass) const {
  return (comm_.rank() * plan_.accumulation + passes_done_) * logical_shards_of_pass;
}

void Learner::add_sums(std::int64_t slot, const PassSums& sums) {
  const at::NoGradGuard no_gradients;
  const auto row = sums_.select(0, slot);
  TORCH_CHECK(row.numel() == 1 + static_cast<std::int64_t>(sums.metrics.size()),
              "a pass gives as many metric sums as its workload says");
  row.select(0, 0).add_(sums.loss.detach());
  for (std::size_t i = 0; i < sums.metrics.size(); ++i)
    row.select(0, static_cast<std::int64_t>(i) + 1).add_(sums.metrics[i].detach());
}

void Learner::measure(const Batch& batch) {
  const at::NoGradGuard no_gradients;
  const bool is_deterministic = plan_.logical_shards > 0;
  const std::int64_t rows =
      is_deterministic ? plan_.batch_size / plan_.logical_shards : plan_.micro_batch;
  const std::int64_t logical_shards = plan_.micro_batch / rows;
  const std::int64_t first = is_deterministic ? first_logical_shard(logical_shards) : 0;
  for (std::int64_t index = 0; index < logical_shards; ++index) {
    parallel_->begin_pass(/*is_last=*/false);
    const auto sums = model_->pass(samples_of(batch, index * rows, rows), {});
    parallel_->end_forward();
    add_sums(first + index, sums);
  }
  passes_done_ = (passes_done_ + 1) % plan_.accumulation;
}

SampleSums Learner::take_measured() {
  auto measured = sums_over_ranks(sums_.cpu());
  sums_.zero_();
  passes_done_ = 0;
  return measured;
}

UpdateOutcome Learner::update(double lr, std::int64_t weight_of_step) {
  TORCH_CHECK(passes_done_ == plan_.accumulation, "an update follows all passes of a step");
  const auto own = sums_.cpu();  // the one time in a step that the host waits for the passes
  are_own_losses_finite_ = at::isfinite(own.select(1, 0)).all().item<bool>();
  UpdateOutcome outcome{.sums = sums_over_ranks(own)};
  outcome.loss = outcome.sums.loss / static_cast<double>(weight_of_step);
  parallel_->finish_gradients();
  if (state_bytes_ == 0) state_bytes_ = parallel_->held_bytes();
  check_gradients(outcome);
  if (outcome.is_applied) {
    parallel_->update(lr);
    average_buffers();
  }
  clear();
  return outcome;
}

void Learner::check_gradients(UpdateOutcome& outcome) {
  if (plan_.precision == Precision::fp16) {
    outcome.is_applied = parallel_->unscale(loss_scale_.scale);
    loss_scale_.update(outcome.is_applied);
  }
  if (!outcome.is_applied) return;
  outcome.gradient_norm = parallel_->clip(plan_.grad_clip);
  // What is not finite must not reach the weights: they are what can still be saved.
  outcome.is_applied = std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm);
}

/// Passes have changed them by what each rank alone has seen.
void Learner::average_buffers() {
  if (comm_.world_size() == 1) return;
  const at::NoGradGuard no_gradients;
  for (auto& buffer : buffers_) {
    comm_.all_reduce_sum(buffer);
    buffer.div_(comm_.world_size());
  }
}

bool Learner::is_finite_here() const {
  return are_own_losses_finite_ && parallel_->is_finite_here();
}

SampleSums Learner::sums_over_ranks(const at::Tensor& own) {
  // Every slot was filled by one rank, so that the sum over ranks keeps its bits.
  const auto* const values = own.const_data_ptr<double>();
  const auto all =
      trainer::sum_over_ranks(comm_, std::vector<double>(values, values + own.numel()));
  const auto columns = static_cast<std::size_t>(own.size(1));
  SampleSums sums{.metrics = std::vector<double>(columns - 1)};
  for (std::size_t i = 0; i < all.size(); ++i)
    (i % columns == 0 ? sums.loss : sums.metrics[i % columns - 1]) += all[i];
  return sums;
}

void Learner::clear() {
  sums_.zero_();
  passes_done_ = 0;
  parallel_->clear();
}

StateTensors Learner::state() const {
  auto state = parallel_->state();
  const auto& tensors = model_->tensors();
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    const auto& spec = specs_[index];
    if (spec.kind == TensorKind::trained || !spec.is_saved) continue;
    state.model.push_back({.name = spec.name, .tensor = tensors[index], .shape = spec.shape});
  }
  return state;
}

}  // namespace tj::trainer
