// All that training changes (weights, moments, averages, loss scale), and how one optimizer step
// changes it: passes that gather gradients, then one update.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/report/picture.h"
#include "trainer/train/data_parallel.h"
#include "trainer/train/lora.h"
#include "trainer/train/plan.h"
#include "trainer/values/loss_scale.h"
#include "trainer/values/reduction_mark.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/model.h"
#include "trainer/workload/step_memory.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

/// Over all that counts in some passes, of all ranks.
struct SampleSums {
  double loss = 0;
  std::vector<double> metrics;  // as the workload's
};

struct UpdateOutcome {
  SampleSums sums;
  double loss = 0;           // mean over all that counts in the step, of all ranks
  double gradient_norm = 0;  // before clipping; 0 when fp16 overflowed
  bool is_applied = true;    // false: loss or gradient was not finite, and the weights stay
  std::optional<double> cosine = {};  // of the compressed gradient to the exact one, if compared
  bool gave_up = false;               // it was too low: from here on gradients are reduced exactly
};

class Learner {
 public:
  /// Initial weights by the plan's seed. All but `workload` outlive it.
  Learner(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
          PhaseClock& clock);
  ~Learner();

  /// Call once the state is what training begins with. `read`: the groups of state() that a
  /// checkpoint has filled; empty: none, and those of all ranks are the same.
  void begin(const GroupStems& read = {});

  /// Forward and backward over a batch of micro_batch samples. `weight_of_step`: of all ranks and
  /// passes; each pass of the step gives the same.
  void pass(const Batch& batch, std::int64_t first_sample, std::int64_t weight_of_step);

  /// Before pass(): what of the next one in this step can be begun is begun.
  void look_ahead(const Batch& next);

  /// Adds the sums over such a batch, with nothing drawn, to what take_measured() gives. Between
  /// two steps only; collective where weights are sharded.
  void measure(const Batch& batch);
  /// Collective as a pass is: what the model draws of the batch.
  std::optional<Picture> picture(const Batch& batch);
  /// Collective: what was measured since the last time, over all ranks.
  SampleSums take_measured();

  /// Collective: makes the gradients equal on all ranks and changes the state, after as many passes
  /// as the plan's accumulation says.
  UpdateOutcome update(double lr, std::int64_t weight_of_step);

  /// Collective: after an update that was applied, when `step` of the run are done.
  void end_step(std::int64_t step) { parallel_->end_step(step); }
  /// Collective, before a save: which groups of state() need not be saved.
  GroupStems prepare_save() { return parallel_->prepare_save(); }

  /// After an update: that this rank's own losses and the weights it holds were finite.
  bool is_finite_here() const;

  /// In the order of tensors_of(): the model's, and those of adapters.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  /// All that a checkpoint holds in tensors; they share their memory with the learner.
  StateTensors state() const;
  /// How many updates the moments stand for.
  std::int64_t optimizer_steps() const { return parallel_->optimizer_steps(); }
  void set_optimizer_steps(std::int64_t steps) { parallel_->set_optimizer_steps(steps); }
  LossScale& loss_scale() { return loss_scale_; }
  const LossScale& loss_scale() const { return loss_scale_; }
  /// How many rows the model's memory was ever given; 0: it has none.
  std::int64_t remembered_rows() const { return memory_ ? memory_->appended() : 0; }
  void set_remembered_rows(std::int64_t rows) {
    if (memory_) memory_->set_appended(rows);
  }
  /// Whether the last pass of a step already changes what state() shares with a checkpoint.
  bool passes_change_state() const { return parallel_->reduce_memory() != nullptr; }
  /// What of a compressed reduction is in state(), beside its tensors.
  ReductionMark reduction() const;
  /// Its tensors are those of a checkpoint after `steps`, of which it says `mark`.
  void go_on_reducing(const ReductionMark& mark, std::int64_t steps);
  /// Bytes of weights, gradients, moments and averages on this rank, where they were the most: at
  /// the beginning of an update. 0 before the first.
  std::int64_t state_bytes() const { return state_bytes_; }

 private:
  void pass_whole(const Batch& batch, std::int64_t first_sample, double factor);
  void pass_by_logical_shards(LogicalShardTree& tree, const Batch& batch, std::int64_t first_sample,
                              double factor);
  PassSums forward(const Batch& batch, std::int64_t first_sample);
  std::int64_t first_logical_shard(std::int64_t logical_shards_of_pass) const;
  void add_sums(std::int64_t slot, const PassSums& sums);
  at::Tensor sums_over_ranks();
  SampleSums sample_sums(std::span<const double> sums) const;
  void check_reduction(UpdateOutcome& outcome);
  double gradient_scale() const;
  UpdateOutcome outcome_of(const at::Tensor& told, std::int64_t weight_of_step);
  ModelKeeper keeper();
  void average_buffers();
  void remember();
  void clear();

  const TrainPlan& plan_;
  Communicator& comm_;
  PhaseClock& clock_;
  std::vector<TensorSpec> specs_;
  std::unique_ptr<DataParallel> parallel_;
  std::optional<StepMemory> memory_;
  std::unique_ptr<Lora> lora_;  // null without --lora
  std::unique_ptr<Model> model_;
  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> buffers_;
  /// As they are between two steps, for checkpoints: the passes of the next step change buffers_
  /// while a save still copies.
  std::vector<at::Tensor> settled_buffers_;
  std::vector<at::Tensor> remembered_;  // by the passes of this step
  LossScale loss_scale_;
  std::int64_t passes_done_ = 0;  // of this step
  std::int64_t state_bytes_ = 0;
  /// Of this step, on the device: float64 [slots, 1 + metric sums]. One slot, unless the plan is
  /// deterministic: then one for each logical shard of the whole batch.
  at::Tensor sums_;
  bool are_own_losses_finite_ = true;  // of the last update
};

}  // namespace tj::trainer
