// Replicas whose gradients are reduced one step late, so that the passes of a whole step hide the
// traffic: those of step k are on the wire while step k + 1 computes, and applied at its end. What
// that costs is a gradient of weights that are one update old. docs/adr/0025.
#pragma once
#include <memory>
#include <optional>

#include "trainer/comm/gradient_watch.h"
#include "trainer/train/replicas.h"
#include "trainer/train/tensor_windows.h"

namespace tj::trainer {

class LateReplicas final : public Replicas {
 public:
  LateReplicas(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
               PhaseClock& clock);
  void adopt(const std::vector<at::Tensor>& trained) override;
  void begin(const GroupStems& read) override;
  void begin_pass(bool) override {}
  void backward(const at::Tensor& loss, double factor, bool is_last) override;
  /// From here to clear() the gradients are those of the step before.
  void finish_gradients() override;
  at::Tensor clip(double norm_max) override;
  void update(double lr, const at::Tensor& skip) override;
  void clear() override;
  GroupStems prepare_save() override;
  StateTensors state() const override;

 private:
  std::vector<at::Tensor> held_beside() const override { return {own_.row, waiting_.row}; }
  void use(const TensorWindows& gradients);
  void wait_for_reduction();

  Communicator& comm_;
  PhaseClock& clock_;
  std::optional<GradientWatch> watch_;
  TensorWindows own_;      // what this step's passes add up
  TensorWindows waiting_;  // of the step before, summed over the ranks once it is no more in flight
  bool has_waiting_ = false;
  at::Tensor is_waiting_;  // [1]: the same, as checkpoints hold it
  std::unique_ptr<Pending> in_flight_;
};

}  // namespace tj::trainer
