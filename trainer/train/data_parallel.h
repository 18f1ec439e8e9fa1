// Where the weights, gradients and moments of a run live, and how they become the same on all
// ranks: replicas whose gradients are all-reduced while backward runs, one step late
// (late_replicas.h) or along a tree of logical shards, replicas that train apart for some steps
// (local_replicas.h), and ZeRO. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/reduce/reduce_memory.h"
#include "trainer/train/logical_shard_tree.h"
#include "trainer/train/plan.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/model.h"

namespace tj::trainer {

class DataParallel {
 public:
  virtual ~DataParallel() = default;

  /// For the model that is to be made.
  virtual ModelKeeper keeper() { return {}; }
  /// The model's trained tensors, in order.
  virtual void adopt(const std::vector<at::Tensor>& trained) = 0;
  /// Once the state is what training begins with. `read`: the groups of state() that a checkpoint
  /// has filled; empty: none, and those of all ranks are the same.
  virtual void begin(const GroupStems& read) = 0;

  /// Before each forward. The gradients of the last pass of an optimizer step complete the sum.
  virtual void begin_pass(bool is_last) = 0;
  /// The backward of a pass: adds the gradients of `loss` times `factor`. A trained tensor that
  /// gets none counts as zero.
  virtual void backward(const at::Tensor& loss, double factor, bool is_last) = 0;
  /// In place of it, where none follows.
  virtual void end_forward() {}
  /// Where the gradients of logical shards are added up; null unless the plan is deterministic.
  virtual LogicalShardTree* tree() { return nullptr; }

  // Collective, after the last pass, in this order.
  virtual void finish_gradients() = 0;
  /// Divides the gradients by `scale`. Not 0, a float32 scalar on the device, when any value of any
  /// rank was not finite.
  virtual at::Tensor unscale(double scale) = 0;
  /// The L2 norm over all gradients, a scalar on the device; they are clipped to `norm_max`, unless
  /// that is 0.
  virtual at::Tensor clip(double norm_max) = 0;
  /// Where `skip`, a float32 scalar on the device, is 1 nothing changes but optimizer_steps(),
  /// which the caller then sets back.
  virtual void update(double lr, const at::Tensor& skip) = 0;
  /// After an update that was not skipped.
  virtual void move_averages() = 0;
  /// After an update or what came instead of it: gradients begin again.
  virtual void clear() = 0;
  /// Last, after a step whose update was not skipped: `step` of the run are done.
  virtual void end_step(std::int64_t step) { (void)step; }

  /// Collective, before a save: state() is at rest from here to the next update. The groups that
  /// need not be saved, as others hold the same.
  virtual GroupStems prepare_save() { return {}; }

  /// What the last step's compressed reduction has shown of itself, where it was compared with the
  /// exact one: GradientSync::take_cosine().
  virtual std::optional<double> take_cosine() { return std::nullopt; }
  /// Of a compressed reduction; null of an exact one. The last pass of a step changes it.
  virtual ReduceMemory* reduce_memory() { return nullptr; }

  /// Whether the weights that this rank holds between two steps are finite.
  virtual bool is_finite_here() const = 0;
  /// Of the trained tensors; shares its memory with the run.
  virtual StateTensors state() const = 0;
  /// How many updates the moments stand for.
  virtual std::int64_t optimizer_steps() const = 0;
  virtual void set_optimizer_steps(std::int64_t steps) = 0;
  /// Bytes of weights, gradients, moments and averages that this rank holds now.
  virtual std::int64_t held_bytes() const = 0;
};

/// By the plan. All arguments outlive it.
std::unique_ptr<DataParallel> make_data_parallel(const TrainPlan& plan, const Workload& workload,
                                                 Communicator& communicator, PhaseClock& clock);

}  // namespace tj::trainer
