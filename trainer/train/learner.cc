#include "trainer/train/learner.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "trainer/checkpoint/training_state.h"
#include "trainer/train/host_read.h"
#include "trainer/train/tuning.h"
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

/// What is not published: its weights have a group of their own, its averages none.
void set_apart(const std::vector<TensorSpec>& specs, StateTensors& state) {
  std::set<std::string> apart;
  for (const auto& spec : specs)
    if (!spec.is_published) apart.insert(spec.name);
  const auto is_apart = [&](const NamedTensor& named) { return apart.contains(named.name); };
  std::ranges::copy_if(state.model, std::back_inserter(state.training), is_apart);
  std::erase_if(state.model, is_apart);
  std::erase_if(state.ema, is_apart);
}

std::optional<StepMemory> memory_of(const Workload& workload, at::Device device) {
  const auto spec = workload.memory();
  if (!spec) return std::nullopt;
  return StepMemory(*spec, device);
}

/// What the host is told of a step, behind its sums.
enum Fact : std::size_t { kNorm, kOverflow, kIsApplied, kAreOwnFinite, kFacts };

at::Tensor told_of(const at::Tensor& sums, const std::array<at::Tensor, kFacts>& facts) {
  std::vector<at::Tensor> all{sums.flatten()};
  for (const auto& fact : facts) all.push_back(fact.to(at::kDouble).view({1}));
  return at::cat(all);
}

std::span<const double> numbers_of(const at::Tensor& told) {
  return {told.const_data_ptr<double>(), static_cast<std::size_t>(told.numel())};
}

/// Of [slots, 1 + metric sums].
at::Tensor are_losses_finite(const at::Tensor& sums) {
  return at::isfinite(sums.select(1, 0)).all();
}

}  // namespace

Learner::Learner(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                 PhaseClock& clock)
    : plan_(plan),
      comm_(communicator),
      clock_(clock),
      specs_(tensors_of(plan, workload)),
      parallel_(make_data_parallel(plan, workload, communicator, clock)),
      memory_(memory_of(workload, device_of(plan.gpu))),
      lora_(make_lora(plan, workload, keeper())),
      model_(workload.make_model(options_of(plan), lora_ ? lora_->keeper() : keeper())),
      tensors_(lora_ ? lora_->with_adapters(model_->tensors(), options_of(plan))
                     : model_->tensors()),
      buffers_(of_kind(TensorKind::buffer, specs_, tensors_)),
      sums_(torch::zeros({std::max<std::int64_t>(1, plan.logical_shards),
                          1 + static_cast<std::int64_t>(workload.metric_sums())},
                         at::TensorOptions().dtype(at::kDouble).device(device_of(plan.gpu)))) {
  parallel_->adopt(of_kind(TensorKind::trained, specs_, tensors_));
  for (const auto& buffer : buffers_) settled_buffers_.push_back(buffer.detach().clone());
}

Learner::~Learner() = default;

ModelKeeper Learner::keeper() {
  auto keeper = parallel_->keeper();
  keeper.place = [this, place = std::move(keeper.place)](std::size_t index,
                                                         const at::Tensor& initial) {
    // What only the plan freezes the model takes for trained.
    const bool is_frozen = specs_[index].kind == TensorKind::frozen;
    const auto tensor = is_frozen ? initial.detach() : initial;
    return place ? place(index, tensor) : tensor;
  };
  if (memory_) keeper.memory = &*memory_;
  if (comm_.world_size() > 1) keeper.ranks = &comm_;
  return keeper;
}

void Learner::begin(const GroupStems& read) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(settled_buffers_[i]);
  parallel_->begin(read);
  if (lora_) lora_->begin(/*is_afresh=*/read.empty());
}

void Learner::pass(const Batch& batch, std::int64_t first_sample, std::int64_t weight_of_step) {
  const double factor = gradient_scale() / static_cast<double>(weight_of_step);
  if (auto* const tree = parallel_->tree()) {
    pass_by_logical_shards(*tree, batch, first_sample, factor);
  } else {
    pass_whole(batch, first_sample, factor);
  }
  ++passes_done_;
}

/// Logical shards are passes of their own.
void Learner::look_ahead(const Batch& next) {
  const auto timed = clock_.time(Section::forward);
  if (parallel_->tree() == nullptr) model_->ahead(next);
}

/// Of what backward makes.
double Learner::gradient_scale() const {
  return plan_.precision == Precision::fp16 ? loss_scale_.scale : 1.0;
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
  if (lora_) lora_->begin_pass();
  auto sums = model_->pass(batch, first_sample);
  if (memory_ && sums.remembered.defined()) remembered_.push_back(sums.remembered);
  return sums;
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

std::optional<Picture> Learner::picture(const Batch& batch) {
  const at::NoGradGuard no_gradients;
  parallel_->begin_pass(/*is_last=*/false);
  const auto drawn = model_->picture(batch);
  parallel_->end_forward();
  if (!drawn.defined()) return std::nullopt;
  const auto pixels = drawn.to(at::kCPU).contiguous();
  TORCH_CHECK(pixels.dim() == 3 && pixels.size(2) == 3 && pixels.scalar_type() == at::kByte,
              "a picture is uint8 [height, width, 3]");
  const auto* const bytes = static_cast<const std::byte*>(pixels.const_data_ptr());
  return Picture{.size = {.height = pixels.size(0), .width = pixels.size(1)},
                 .rgb = {bytes, bytes + pixels.numel()}};
}

SampleSums Learner::take_measured() {
  const auto told = HostRead(sums_over_ranks().flatten()).wait();
  sums_.zero_();
  passes_done_ = 0;
  return sample_sums(numbers_of(told));
}

UpdateOutcome Learner::update(double lr, std::int64_t weight_of_step) {
  TORCH_CHECK(passes_done_ == plan_.accumulation, "an update follows all passes of a step");
  const auto sums = sums_over_ranks();
  parallel_->finish_gradients();
  if (state_bytes_ == 0) state_bytes_ = parallel_->held_bytes();
  const auto overflow = plan_.precision == Precision::fp16
                            ? parallel_->unscale(loss_scale_.scale)
                            : torch::zeros({}, sums.options().dtype(at::kFloat));
  const auto norm = parallel_->clip(plan_.grad_clip);
  // What is not finite must not reach the weights: they are what can still be saved.
  const auto is_applied =
      are_losses_finite(sums).logical_and(at::isfinite(norm)).logical_and(overflow.eq(0));
  HostRead read(told_of(sums, {norm, overflow, is_applied, are_losses_finite(sums_)}));
  // The device has this to do while the host looks at the numbers.
  parallel_->update(lr, is_applied.logical_not().to(at::kFloat));
  if (lora_) lora_->merge();
  auto outcome = outcome_of(read.wait(), weight_of_step);
  check_reduction(outcome);
  if (outcome.is_applied) {
    parallel_->move_averages();
    if (lora_) lora_->move_averages();
  } else {
    parallel_->set_optimizer_steps(parallel_->optimizer_steps() - 1);
  }
  // The passes were made, whether their gradients were of use or not.
  average_buffers();
  remember();
  clear();
  return outcome;
}

UpdateOutcome Learner::outcome_of(const at::Tensor& told, std::int64_t weight_of_step) {
  const auto all = numbers_of(told);
  const auto facts = all.last(kFacts);
  UpdateOutcome outcome{.sums = sample_sums(all.first(all.size() - kFacts)),
                        .is_applied = facts[kIsApplied] != 0};
  outcome.loss = outcome.sums.loss / static_cast<double>(weight_of_step);
  const bool has_overflowed = facts[kOverflow] != 0;
  if (!has_overflowed) outcome.gradient_norm = facts[kNorm];
  const double scale = gradient_scale();
  if (plan_.precision == Precision::fp16) loss_scale_.update(!has_overflowed);
  auto* const memory = parallel_->reduce_memory();
  if (memory != nullptr && gradient_scale() != scale) memory->rescale(gradient_scale() / scale);
  are_own_losses_finite_ = facts[kAreOwnFinite] != 0;
  return outcome;
}

/// Collective where a step was checked, which is the same on all ranks. They go by rank 0's number.
void Learner::check_reduction(UpdateOutcome& outcome) {
  const auto cosine = parallel_->take_cosine();
  if (!cosine) return;
  auto agreed = torch::full({}, *cosine, at::kDouble);
  comm_.broadcast(agreed, 0);
  if (std::isnan(agreed.item<double>())) return;  // nothing was applied that could be judged
  outcome.cosine = agreed.item<double>();
  outcome.gave_up = *outcome.cosine < plan_.reduce.check_min;
  if (outcome.gave_up) parallel_->reduce_memory()->is_exact = true;
}

ReductionMark Learner::reduction() const {
  const auto* const memory = parallel_->reduce_memory();
  if (memory == nullptr) return {};
  const auto codec = plan_.reduce.codec;
  return {.ranks = has_feedback(codec) ? comm_.world_size() : 0,
          .factors_rank = codec == Codec::powersgd ? plan_.reduce.rank : 0,
          .is_exact = memory->is_exact,
          .scale = gradient_scale()};
}

void Learner::go_on_reducing(const ReductionMark& mark, std::int64_t steps) {
  auto* const memory = parallel_->reduce_memory();
  if (memory == nullptr) return;
  memory->steps = steps;
  memory->is_exact = mark.is_exact;
  memory->is_to_be_paid = comm_.world_size() == 1 && mark.ranks > 0;
  if (mark.scale > 0) memory->rescale(gradient_scale() / mark.scale);
}

/// Passes have changed them by what each rank alone has seen.
void Learner::average_buffers() {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (comm_.world_size() > 1) {
      comm_.all_reduce_sum(buffers_[i]);
      buffers_[i].div_(comm_.world_size());
    }
    settled_buffers_[i].copy_(buffers_[i]);
  }
}

/// Ranks have the samples of a step one after another, as passes have those of a rank.
void Learner::remember() {
  if (remembered_.empty()) return;
  const at::NoGradGuard no_gradients;
  const auto own = at::cat(remembered_).contiguous();
  remembered_.clear();
  if (comm_.world_size() == 1) return memory_->append(own);
  auto all = torch::empty({comm_.world_size() * own.numel()}, own.options());
  comm_.all_gather(own.view({-1}), all)->wait();
  memory_->append(all.view({-1, own.size(1)}));
}

bool Learner::is_finite_here() const {
  return are_own_losses_finite_ && parallel_->is_finite_here();
}

at::Tensor Learner::sums_over_ranks() {
  // Every slot was filled by one rank, so that the sum over ranks keeps its bits.
  auto sums = sums_.clone();
  comm_.all_reduce_sum(sums);
  return sums;
}

SampleSums Learner::sample_sums(std::span<const double> sums) const {
  const auto columns = static_cast<std::size_t>(sums_.size(1));
  SampleSums added{.metrics = std::vector<double>(columns - 1)};
  for (std::size_t i = 0; i < sums.size(); ++i)
    (i % columns == 0 ? added.loss : added.metrics[i % columns - 1]) += sums[i];
  return added;
}

void Learner::clear() {
  sums_.zero_();
  passes_done_ = 0;
  parallel_->clear();
}

StateTensors Learner::state() const {
  auto state = parallel_->state();
  std::size_t buffer = 0;
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    const auto& spec = specs_[index];
    const bool is_buffer = spec.kind == TensorKind::buffer;
    const auto& tensor = is_buffer ? settled_buffers_[buffer++] : tensors_[index];
    if (spec.kind == TensorKind::trained || !spec.is_saved) continue;
    state.model.push_back({.name = spec.name, .tensor = tensor, .shape = spec.shape});
  }
  set_apart(specs_, state);
  if (lora_) lora_->append_averages(state.ema);
  if (memory_)
    state.memory.push_back({.name = memory_->spec().name,
                            .tensor = memory_->rows(),
                            .shape = memory_->rows().sizes().vec()});
  return state;
}

}  // namespace tj::trainer
