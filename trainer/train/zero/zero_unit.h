// One group of tensors under ZeRO: where its weights, gradients and moments lie, and the
// collectives that move them. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/train/adamw.h"
#include "trainer/train/zero/shard_ranks.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {

/// What is the same for all units of a run.
struct ZeroKind {
  int stage = 1;
  at::ScalarType weights = at::kFloat;    // what the model computes with; updated in float32
  at::ScalarType gradients = at::kFloat;  // of their sum over passes
  at::Device device = at::kCPU;
  bool is_deterministic = false;  // gradients are summed along the tree of logical shards
};

/// How a unit's shard is updated. The tensors are float32 scalars on its device.
struct ShardUpdate {
  double lr = 0;
  at::Tensor factor;  // of the gradient; undefined: 1
  at::Tensor skip;    // 1: the weights and moments stay; undefined: 0
};

class ZeroUnit {
 public:
  struct Member {
    std::size_t tensor = 0;  // index in the model
    std::vector<std::int64_t> shape;
    std::int64_t size = 0;
  };

  ZeroUnit(std::vector<Member> members, bool is_whole, const ZeroKind& kind, ShardRanks& ranks);
  ZeroUnit(ZeroUnit&&) noexcept;
  ~ZeroUnit();

  const std::vector<Member>& members() const { return members_; }
  const FlatLayout& layout() const { return layout_; }

  /// The parameter of a member: a window on the whole weights. Its value is only there while they
  /// are.
  const at::Tensor& parameter(std::size_t member) const { return parameters_[member]; }
  /// Stores this rank's part of an initial value, and where the weights stay whole all of it. An
  /// average begins there too.
  void place(std::size_t member, const at::Tensor& initial);
  /// Moments and, with `has_averages`, averages: all of them shards. One rule for each member.
  void make_optimizer(const std::vector<UpdateRule>& rules, bool has_averages);

  // Weights.
  void begin_gather();
  void wait_gathered();
  void release();
  /// Its weights are all there, or on their way.
  bool is_gathered() const;

  // Gradients. With `place` (float32, layout().size()) they live there from now on, and are not
  // taken but written by others.
  void keep_gradients_in(const at::Tensor& place);
  /// Window of a member on the whole gradient.
  at::Tensor whole_gradient(std::size_t member) const;
  /// Takes what backward has left in the parameter's grad, once in each pass.
  void take_gradient(std::size_t member);
  /// A member without a gradient in this pass counts as zero. In the last pass of a step the sums
  /// of all groups are added up, too.
  void begin_reduce(bool is_last_pass);
  /// Once the sum of the group is there that over the groups begins, where one is to be made.
  void go_on_reducing();
  void wait_reduced();
  /// All ranks have reduced what this pass gave.
  void end_pass() { is_reduced_ = false; }
  /// The sum over ranks and passes of this rank's shard, once reduced; before the last pass, over
  /// the ranks of the group.
  at::Tensor& gradient() { return gradient_; }

  /// New weights of the shard from gradient(); begins to gather them where they stay whole.
  void update(const ShardUpdate& how);
  void move_averages(double decay);
  /// After an update or what came instead of it: gradients begin again.
  void clear();
  /// The weights the model computes with follow the float32 ones, as after a checkpoint was read.
  void refresh();

  // What a checkpoint holds of a member: this rank's part, flat and float32; undefined: none.
  const at::Tensor& weights(std::size_t member) const { return pieces_[member]; }
  /// All of the member, where each rank has that in float32 between two steps; else undefined.
  at::Tensor whole_weights(std::size_t member) const;
  at::Tensor first_moment(std::size_t member) const;
  at::Tensor second_moment(std::size_t member) const;
  at::Tensor average(std::size_t member) const;
  AdamW& optimizer() { return *optimizer_; }
  const AdamW& optimizer() const { return *optimizer_; }

  /// Everything above that is alive now.
  std::vector<at::Tensor> held() const;

 private:
  std::vector<at::Tensor> parts() const;
  bool keeps_whole_gradient() const { return kind_.stage == 1 || is_placed_; }
  void allocate_whole_gradient();
  void begin_crossing();
  int shard() const { return ranks_->place().shard(); }

  std::vector<Member> members_;
  FlatLayout layout_;
  bool is_whole_;
  ZeroKind kind_;
  ShardRanks* ranks_;
  at::Tensor whole_;                    // weights of all shards; without memory while released
  at::Tensor shard_;                    // this rank's; a window on whole_ where that stays
  at::Tensor master_;                   // in float32; shard_ itself where that is
  std::vector<at::Tensor> parameters_;  // windows on whole_, by member
  std::vector<at::Tensor> pieces_;      // windows on master_, by member; undefined: no part
  std::vector<std::optional<std::size_t>> moment_index_;  // by member
  std::unique_ptr<AdamW> optimizer_;
  std::vector<at::Tensor> averages_;  // as the optimizer's moments
  at::Tensor whole_gradient_;         // of this rank's passes
  at::Tensor gradient_;
  at::Tensor pass_sum_;  // of one pass, to be added to gradient_
  std::vector<bool> has_arrived_;
  bool is_placed_ = false;
  bool has_sum_ = false;     // gradient_ holds earlier passes
  bool is_reduced_ = false;  // in this pass
  bool will_cross_ = false;  // from group to group, once the group's own sum is there
  std::unique_ptr<Pending> gathering_;
  std::unique_ptr<Pending> reducing_;  // in the group
  std::unique_ptr<Pending> crossing_;  // over the groups
};

}  // namespace tj::trainer
