// ZeRO stages 1, 2 and 3 (Rajbhandari et al. 2020: ZeRO, section 5) for a model that tells its
// blocks: keeps parameters, gradients and moments in shards, brings weights before a block needs
// them and takes gradients away as backward makes them. Includes torch.
#pragma once
#include <deque>
#include <functional>
#include <span>

#include "trainer/checkpoint/training_state.h"
#include "trainer/train/logical_shard_tree.h"
#include "trainer/train/zero/shard_ranks.h"
#include "trainer/train/zero/zero_schedule.h"
#include "trainer/train/zero/zero_unit.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/parameter_groups.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

struct ZeroInputs {
  std::vector<TensorSpec> tensors;
  std::vector<ModelBlock> blocks;
  std::vector<UpdateRule> rules;  // of each tensor
  ZeroOptions options;            // of stage 1 and above
  ZeroKind kind;
  bool has_averages = false;
};

class Zero final : public BlockHooks {
 public:
  Zero(ZeroInputs inputs, Communicator& communicator);
  ~Zero() override;

  /// The parameter in place of initial value `initial`: for the model, tensor by tensor.
  at::Tensor place(std::size_t tensor, const at::Tensor& initial);
  /// Collective: once this rank's parts are what training begins with.
  void begin();

  void before(std::size_t block) override;
  void after(std::size_t block, const at::Tensor& output) override;
  void hold() override;
  /// Before each forward. The gradients of the last pass of an optimizer step complete the sum.
  void begin_pass(bool is_last);
  /// Collective, after each backward.
  void end_pass();
  /// In place of end_pass() where no backward follows: sharded weights are let go.
  void end_forward();
  /// Where the gradients of logical shards are added up; null unless deterministic.
  LogicalShardTree* tree() { return tree_ ? &*tree_ : nullptr; }

  /// Collective, after the last pass: each rank has the sum of its shards, and no weights stay.
  void finish_gradients();
  /// Collective: divides the gradients by `scale`. Not 0, a float32 scalar on the device, when any
  /// value was not finite.
  at::Tensor unscale(double scale);
  /// Collective: the L2 norm over all gradients, a scalar on the device. update() clips to
  /// `norm_max`; 0: it does not.
  at::Tensor clip(double norm_max);
  /// Collective. Where `skip`, a float32 scalar on the device, is 1 nothing changes but
  /// step_count().
  void update(double lr, const at::Tensor& skip = {});
  /// After an update that was not skipped.
  void move_averages(double decay);
  void clear();

  std::int64_t step_count() const;
  void set_step_count(std::int64_t steps);
  /// This rank's parts of all that a checkpoint holds.
  StateTensors state() const;
  /// Bytes of weights, gradients, moments and averages that this rank holds now.
  std::int64_t held_bytes() const;
  const std::vector<ZeroStep>& steps() const { return steps_; }

 private:
  struct Home {
    std::size_t unit = 0;
    std::size_t member = 0;
  };

  void keep_gradients_in_tree();
  void take_gradients_by_hooks();
  void enter(std::size_t step);
  void leave(std::size_t step);
  void reduce(std::size_t unit);
  /// Of weights that come and go, also those that were gathered ahead or stay for the next pass.
  void release_all();
  std::vector<at::Tensor> gradients();
  at::Tensor exact_norm();
  at::Tensor norm_of_shards();
  void append(std::vector<NamedTensor>& list, const std::string& prefix,
              const std::function<at::Tensor(const ZeroUnit&, std::size_t)>& part) const;

  ZeroInputs inputs_;
  Communicator& comm_;
  ShardRanks ranks_;
  std::vector<std::optional<Home>> homes_;  // of each tensor; frozen ones have none
  std::vector<ZeroUnit> units_;
  std::vector<ZeroStep> steps_;
  std::vector<at::Tensor> frozen_;
  std::optional<LogicalShardTree> tree_;
  std::size_t next_step_ = 0;
  bool is_last_pass_ = false;
  bool is_holding_ = false;           // in this pass
  std::deque<std::size_t> reducing_;  // units, the oldest first
  at::Tensor clip_factor_;            // of this step; undefined: 1
};

/// Bytes of the memory under `tensors`, each piece counted once; undefined ones are skipped.
std::int64_t distinct_bytes(std::span<const at::Tensor> tensors);

}  // namespace tj::trainer
