#include "trainer/train/data_parallel.h"

#include <torch/types.h>

#include <algorithm>

#include "trainer/comm/gradient_watch.h"
#include "trainer/process/lines.h"
#include "trainer/train/bucket_plan.h"
#include "trainer/train/gradients.h"
#include "trainer/train/late_replicas.h"
#include "trainer/train/local_replicas.h"
#include "trainer/train/reduce_probe.h"
#include "trainer/train/replicas.h"
#include "trainer/train/tuning.h"
#include "trainer/train/zero/zero.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

/// What a compressed reduction remembers, as a checkpoint holds it: the errors of each rank in a
/// row of its own.
void append_reduction(const ReduceMemory& memory, Communicator& communicator,
                      std::vector<NamedTensor>& list) {
  const int ranks = communicator.world_size();
  for (const auto& entry : memory.entries()) {
    if (entry.error.defined()) {
      const std::int64_t elements = entry.error.numel();
      NamedTensor named{
          .name = "error." + entry.name, .tensor = entry.error, .shape = {ranks, elements}};
      for (int rank = 0; rank < ranks && ranks > 1; ++rank)
        named.parts.push_back({.begin = rank * elements, .end = (rank + 1) * elements});
      list.push_back(std::move(named));
    }
    if (entry.factor.defined()) append_tensors(list, {entry.name}, {entry.factor}, "factor.");
  }
}

/// Gradients are all-reduced bucket by bucket, as backward makes them.
class OverlappedReplicas final : public Replicas {
 public:
  OverlappedReplicas(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                     PhaseClock& clock)
      : Replicas(plan, workload),
        comm_(communicator),
        clock_(clock),
        leaves_unused_(workload.may_leave_tensors_unused()) {}

  void adopt(const std::vector<at::Tensor>& trained) override {
    Replicas::adopt(trained);
    if (plan_.reduce.codec != Codec::fp32) memory_.emplace(parameters_, names_, plan_.reduce);
  }

  void begin(const GroupStems&) override {
    if (comm_.world_size() > 1) watch_.emplace(parameters_, clock_);
    const auto chosen = plan_.sync.bucket_bytes;
    reduce_in_buckets_of(chosen > 0 ? chosen : kGradientBucketBytes);
  }

  void begin_pass(bool is_last) override {
    if (!is_last) return;
    // The Reducer gives nothing back to a gradient that is not there where no rank's last pass uses
    // the tensor, though an earlier one of another rank may have.
    if (leaves_unused_ && comm_.world_size() > 1) complete_gradients();
    sync_->before_last_pass();
  }

  void backward(const at::Tensor& loss, double factor, bool is_last) override {
    // The sync takes the mean over the ranks; what is wanted is the sum.
    auto scaled = loss * (factor * comm_.world_size());
    // A pass in which nothing was trained takes its part in the reduction all the same.
    if (!scaled.requires_grad()) scaled = scaled + parameters_.front().sum() * 0;
    if (is_last) sync_->before_backward(scaled);
    try {
      std::optional<GradientWatch::Pass> watched;
      if (watch_) watched.emplace(*watch_, is_last);
      scaled.backward();
      if (watched && is_last) backward_seconds_ = watched->seconds_to_last_gradient();
    } catch (const std::exception& failure) {
      comm_.check_peers(failure);
      throw;
    }
  }

  void finish_gradients() override {
    if (leaves_unused_) complete_gradients();
    if (memory_ && memory_->is_to_be_paid) memory_->pay(parameters_);
  }

  std::optional<double> take_cosine() override { return sync_->take_cosine(); }
  ReduceMemory* reduce_memory() override { return memory_ ? &*memory_ : nullptr; }

  StateTensors state() const override {
    auto state = Replicas::state();
    if (memory_) append_reduction(*memory_, comm_, state.reduction);
    return state;
  }

  std::int64_t held_bytes() const override {
    return Replicas::held_bytes() + (memory_ ? memory_->held_bytes() : 0);
  }

  at::Tensor clip(double norm_max) override { return clip_gradients(gradients(), norm_max); }

  void clear() override {
    if (comm_.world_size() == 1) {
      drop_gradients();
    } else {
      // In place: the gradients are windows on the buckets of the Reducer.
      at::_foreach_zero_(gradients());
    }
  }

  void end_step(std::int64_t) override {
    const bool is_to_choose = plan_.sync.bucket_bytes == 0 && comm_.world_size() > 1;
    if (is_to_choose && ++steps_done_ == kStepsToLookAt) choose_buckets();
  }

 private:
  /// The first step warms up, and shows the Reducer the order of the gradients.
  static constexpr int kStepsToLookAt = 3;

  void reduce_in_buckets_of(std::int64_t bytes) {
    sync_ = comm_.synchronise(parameters_, names_,
                              {.leaves_unused = leaves_unused_,
                               .bucket_bytes = bytes,
                               .reduce = plan_.reduce,
                               .memory = reduce_memory()});
  }

  /// The order in which backward makes them is that of the layers, last to first.
  void choose_buckets() {
    std::vector<std::int64_t> tensor_bytes;
    for (const auto& parameter : parameters_)
      tensor_bytes.push_back(static_cast<std::int64_t>(parameter.nbytes()));
    std::ranges::reverse(tensor_bytes);
    const auto profile = probe_reduction(comm_, backward_seconds_);
    const auto bytes = best_bucket_bytes(profile, tensor_bytes);
    if (comm_.rank() == 0) say(bucket_line(profile, tensor_bytes, bytes));
    if (bytes == kGradientBucketBytes) return;
    sync_ = nullptr;
    drop_gradients();  // windows on the buckets that go
    reduce_in_buckets_of(bytes);
  }

  Communicator& comm_;
  PhaseClock& clock_;
  bool leaves_unused_;
  std::optional<GradientWatch> watch_;  // where there are ranks to wait for
  std::optional<ReduceMemory> memory_;  // of a compressed reduction; outlives the sync
  std::unique_ptr<GradientSync> sync_;
  double backward_seconds_ = 0;  // of the last pass that reduced, without the waits
  int steps_done_ = 0;
};

/// Gradients are summed in an order that does not depend on the number of ranks.
class TreeReplicas final : public Replicas {
 public:
  TreeReplicas(const TrainPlan& plan, const Workload& workload, Communicator& communicator)
      : Replicas(plan, workload), comm_(communicator) {}

  void begin(const GroupStems&) override { tree_.emplace(parameters_); }
  void begin_pass(bool) override {}
  void backward(const at::Tensor& loss, double factor, bool) override { accumulate(loss, factor); }
  LogicalShardTree* tree() override { return &*tree_; }
  void finish_gradients() override { tree_->sum(comm_); }
  at::Tensor clip(double norm_max) override {
    return clip_gradients_exactly(gradients(), norm_max);
  }
  void clear() override {}  // each logical shard begins with zeros anyway

 private:
  Communicator& comm_;
  std::optional<LogicalShardTree> tree_;
};

/// Under ZeRO the weights the model computes with are of the precision of the passes, and the
/// float32 ones are sharded. Not so where the bits must be those of stage 0.
ZeroKind kind_of(const TrainPlan& plan) {
  const bool is_deterministic = plan.logical_shards > 0;
  ZeroKind kind{.stage = plan.zero.stage,
                .device = device_of(plan.gpu),
                .is_deterministic = is_deterministic};
  if (is_deterministic) return kind;
  kind.weights = type_of(plan.precision);
  // Sums over passes need more than the eight bits of a bfloat16, and fp16 more range.
  if (plan.precision == Precision::bf16 && plan.accumulation == 1) kind.gradients = kind.weights;
  return kind;
}

/// Each rank has its shards of it all.
class ShardedReplicas final : public DataParallel {
 public:
  ShardedReplicas(const TrainPlan& plan, const Workload& workload, Communicator& communicator)
      : plan_(plan),
        zero_({.tensors = tensors_of(plan, workload),
               .blocks = blocks_of(plan, workload),
               .rules = rules_of(plan, workload),
               .options = plan.zero,
               .kind = kind_of(plan),
               .has_averages = plan.ema_decay > 0},
              communicator) {}

  ModelKeeper keeper() override {
    return {.place = [this](std::size_t index,
                            const at::Tensor& initial) { return zero_.place(index, initial); },
            .hooks = &zero_};
  }
  void adopt(const std::vector<at::Tensor>& trained) override { parameters_ = trained; }
  void begin(const GroupStems&) override { zero_.begin(); }
  void begin_pass(bool is_last) override { zero_.begin_pass(is_last); }
  void backward(const at::Tensor& loss, double factor, bool) override {
    if (loss.requires_grad()) (loss * factor).backward();
    zero_.end_pass();
  }
  void end_forward() override { zero_.end_forward(); }
  LogicalShardTree* tree() override { return zero_.tree(); }
  void finish_gradients() override { zero_.finish_gradients(); }
  at::Tensor unscale(double scale) override { return zero_.unscale(scale); }
  at::Tensor clip(double norm_max) override { return zero_.clip(norm_max); }
  void update(double lr, const at::Tensor& skip) override { zero_.update(lr, skip); }
  void move_averages() override { zero_.move_averages(plan_.ema_decay); }
  void clear() override { zero_.clear(); }
  bool is_finite_here() const override {
    if (plan_.zero.stage == 3) return true;  // between two passes no block has its weights
    return are_finite(parameters_);
  }
  StateTensors state() const override { return zero_.state(); }
  std::int64_t optimizer_steps() const override { return zero_.step_count(); }
  void set_optimizer_steps(std::int64_t steps) override { zero_.set_step_count(steps); }
  std::int64_t held_bytes() const override { return zero_.held_bytes(); }

 private:
  const TrainPlan& plan_;
  Zero zero_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace

std::unique_ptr<DataParallel> make_data_parallel(const TrainPlan& plan, const Workload& workload,
                                                 Communicator& communicator, PhaseClock& clock) {
  if (plan.zero.stage > 0) return std::make_unique<ShardedReplicas>(plan, workload, communicator);
  if (plan.logical_shards > 0) return std::make_unique<TreeReplicas>(plan, workload, communicator);
  switch (plan.sync.kind) {
    case SyncKind::step: break;
    case SyncKind::late: return std::make_unique<LateReplicas>(plan, workload, communicator, clock);
    case SyncKind::local:
    case SyncKind::diloco: return std::make_unique<LocalReplicas>(plan, workload, communicator);
  }
  return std::make_unique<OverlappedReplicas>(plan, workload, communicator, clock);
}

}  // namespace tj::trainer
