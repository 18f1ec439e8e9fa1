// Replicas that train alone for some steps and are then made the same: by their mean (local SGD,
// arXiv 1805.09767), or by an outer optimizer to which what they have learned is a gradient
// (DiLoCo, arXiv 2311.08105). A round is what lies between two synchronisations. docs/adr/0025.
#pragma once
#include "trainer/train/replicas.h"
#include "trainer/train/tensor_windows.h"

namespace tj::trainer {

class LocalReplicas final : public Replicas {
 public:
  LocalReplicas(const TrainPlan& plan, const Workload& workload, Communicator& communicator);
  void adopt(const std::vector<at::Tensor>& trained) override;
  void begin(const GroupStems& read) override;
  void begin_pass(bool) override {}
  void backward(const at::Tensor& loss, double factor, bool is_last) override;
  void finish_gradients() override { complete_gradients(); }
  /// Each rank clips its own gradient. The root of the mean of the squares of their norms: the same
  /// on all ranks, and not finite where that of any rank is not.
  at::Tensor clip(double norm_max) override;
  void update(double lr, const at::Tensor& skip) override;
  void clear() override { drop_gradients(); }
  void end_step(std::int64_t step) override;
  GroupStems prepare_save() override;
  /// Its model is that of the last synchronisation; its moments are those of rank 0.
  StateTensors state() const override;

 private:
  std::vector<at::Tensor> held_beside() const override;
  bool is_diloco() const { return plan_.sync.kind == SyncKind::diloco; }
  void average_all();
  void move_outer();

  Communicator& comm_;
  TensorWindows agreed_;    // the weights after the last synchronisation, the same on all ranks
  TensorWindows momentum_;  // of the outer optimizer, the same on all ranks
  bool is_in_round_ = false;
};

}  // namespace tj::trainer
