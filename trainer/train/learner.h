// All that training changes (weights, moments, averages, loss scale), and how one optimizer step
// changes it: passes that gather gradients, then one update.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/gradient_watch.h"
#include "trainer/train/adamw.h"
#include "trainer/train/plan.h"
#include "trainer/train/shard_tree.h"
#include "trainer/values/loss_scale.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

class Zero;
struct StateTensors;

struct UpdateOutcome {
  double loss = 0;           // mean over all that counts in the step, of all ranks
  double gradient_norm = 0;  // before clipping; 0 when fp16 overflowed
  bool is_applied = true;    // false: loss or gradient was not finite, and the weights stay
};

class Learner {
 public:
  /// Initial weights by the plan's seed. All but `workload` outlive it.
  Learner(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
          PhaseClock& clock);
  ~Learner();

  /// Call once the state is what training begins with, the same on all ranks.
  void begin();

  /// Forward and backward over a batch of micro_batch samples. `weight_of_step`: of all ranks and
  /// passes; each pass of the step gives the same.
  void pass(const Batch& batch, std::int64_t first_sample, std::int64_t weight_of_step);

  /// Adds the loss over such a batch, with nothing drawn, to what take_measured() gives. Between
  /// two steps only; collective where weights are sharded.
  void measure(const Batch& batch);
  /// Collective: the sum of the losses measured since the last time, over all ranks.
  double take_measured();

  /// Collective: makes the gradients equal on all ranks and changes the state, after as many passes
  /// as the plan's accumulation says.
  UpdateOutcome update(double lr, std::int64_t weight_of_step);

  /// After an update: that this rank's own losses and the weights it holds were finite.
  bool is_finite_here() const;

  const Model& model() const { return *model_; }
  /// All that a checkpoint holds in tensors; they share their memory with the learner.
  StateTensors state() const;
  /// How many updates the moments stand for.
  std::int64_t optimizer_steps() const;
  void set_optimizer_steps(std::int64_t steps);
  LossScale& loss_scale() { return loss_scale_; }
  const LossScale& loss_scale() const { return loss_scale_; }
  /// Bytes of weights, gradients, moments and averages on this rank, where they were the most: at
  /// the beginning of an update. 0 before the first.
  std::int64_t state_bytes() const { return state_bytes_; }

 private:
  void pass_overlapped(const Batch& batch, std::int64_t first_sample, double factor);
  void pass_by_shards(const Batch& batch, std::int64_t first_sample, double factor);
  at::Tensor forward(const Batch& batch, std::int64_t first_sample);
  std::int64_t first_shard(std::int64_t shards_of_pass) const;
  double loss_over_ranks();
  void check_gradients(UpdateOutcome& outcome);
  bool unscale();
  double clip();
  void apply(double lr);
  std::int64_t held_bytes() const;
  void clear_gradients();
  std::vector<at::Tensor> gradients() const;

  const TrainPlan& plan_;
  Communicator& comm_;
  PhaseClock& clock_;
  std::unique_ptr<Zero> zero_;  // null at stage 0
  std::unique_ptr<Model> model_;
  std::unique_ptr<AdamW> optimizer_;  // present at stage 0, as are the averages and the sync
  LossScale loss_scale_;
  std::vector<at::Tensor> averages_;
  std::optional<GradientWatch> gradient_watch_;  // present where sync_ has ranks to wait for
  std::unique_ptr<GradientSync> sync_;           // absent when the plan is deterministic
  std::optional<ShardTree> shard_tree_;          // present then
  std::int64_t passes_done_ = 0;                 // of this step
  std::int64_t state_bytes_ = 0;
  std::vector<double> shard_losses_;   // sums, in this step; one slot unless deterministic
  bool are_own_losses_finite_ = true;  // of the last update
};

}  // namespace tj::trainer
