#include "trainer/train/late_replicas.h"

#include <torch/types.h>

#include <utility>

#include "trainer/checkpoint/folder.h"
#include "trainer/train/gradients.h"

namespace tj::trainer {

LateReplicas::LateReplicas(const TrainPlan& plan, const Workload& workload,
                           Communicator& communicator, PhaseClock& clock)
    : Replicas(plan, workload), comm_(communicator), clock_(clock) {}

void LateReplicas::adopt(const std::vector<at::Tensor>& trained) {
  Replicas::adopt(trained);
  const at::NoGradGuard no_gradients;
  own_ = windows_like(parameters_);
  waiting_ = windows_like(parameters_);
  is_waiting_ = torch::zeros({1}, own_.row.options());
}

void LateReplicas::begin(const GroupStems& read) {
  if (!read.contains(kSyncStem)) {
    waiting_.row.zero_();
    is_waiting_.zero_();
  }
  has_waiting_ = is_waiting_.item<float>() > 0;
  use(own_);
  watch_.emplace(parameters_, clock_);
}

void LateReplicas::backward(const at::Tensor& loss, double factor, bool) {
  const GradientWatch::Pass watched(*watch_, /*reduces=*/false);
  accumulate(loss, factor);
}

void LateReplicas::finish_gradients() {
  wait_for_reduction();
  use(waiting_);
}

at::Tensor LateReplicas::clip(double norm_max) { return clip_gradients(gradients(), norm_max); }

/// In the first step there is nothing to apply yet.
void LateReplicas::update(double lr, const at::Tensor& skip) {
  if (has_waiting_) Replicas::update(lr, skip);
}

void LateReplicas::clear() {
  const at::NoGradGuard no_gradients;
  waiting_.row.copy_(own_.row);
  own_.row.zero_();
  use(own_);
  has_waiting_ = true;
  is_waiting_.fill_(1);
  in_flight_ = comm_.begin_all_reduce_sum(waiting_.row);
}

/// A checkpoint has the gradients as the next step will apply them.
GroupStems LateReplicas::prepare_save() {
  wait_for_reduction();
  return {};
}

StateTensors LateReplicas::state() const {
  auto state = Replicas::state();
  append_tensors(state.sync, names_, waiting_.windows, "waiting.");
  append_tensors(state.sync, {"is_waiting"}, {is_waiting_});
  return state;
}

void LateReplicas::use(const TensorWindows& gradients) {
  for (std::size_t index = 0; index < parameters_.size(); ++index)
    parameters_[index].mutable_grad() = gradients.windows[index];
}

void LateReplicas::wait_for_reduction() {
  if (const auto pending = std::exchange(in_flight_, nullptr)) pending->wait();
}

}  // namespace tj::trainer
