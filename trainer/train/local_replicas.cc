#include "trainer/train/local_replicas.h"

#include <torch/types.h>

#include "trainer/checkpoint/folder.h"
#include "trainer/train/gradients.h"

namespace tj::trainer {
namespace {

/// Collective. The mean over the ranks of each.
TensorWindows mean_over_ranks(Communicator& communicator, const std::vector<at::Tensor>& tensors) {
  auto mean = windows_like(tensors);
  copy_all(tensors, mean.windows);
  communicator.all_reduce_sum(mean.row);
  mean.row.div_(communicator.world_size());
  return mean;
}

}  // namespace

LocalReplicas::LocalReplicas(const TrainPlan& plan, const Workload& workload,
                             Communicator& communicator)
    : Replicas(plan, workload), comm_(communicator) {}

void LocalReplicas::adopt(const std::vector<at::Tensor>& trained) {
  Replicas::adopt(trained);
  const at::NoGradGuard no_gradients;
  agreed_ = windows_like(parameters_);
  copy_all(parameters_, agreed_.windows);
  if (is_diloco()) momentum_ = windows_like(parameters_);
}

/// What was filled is state(): where the ranks' own was not in it they begin with what is agreed.
void LocalReplicas::begin(const GroupStems& read) {
  const at::NoGradGuard no_gradients;
  is_in_round_ = read.contains(kRoundStem);
  if (!is_in_round_) copy_all(agreed_.windows, parameters_);
  if (is_diloco() && !read.contains(kSyncStem)) momentum_.row.zero_();
  if (!read.contains(kOptimizerStem) || read.contains(kRanksStem) || comm_.world_size() == 1)
    return;
  for (const auto* const moments : {&optimizer().first_moments(), &optimizer().second_moments()}) {
    for (auto moment : *moments) comm_.broadcast(moment, 0);
  }
}

void LocalReplicas::backward(const at::Tensor& loss, double factor, bool) {
  // `factor` is one of all ranks: the mean over the ranks of these gradients is that of the step.
  accumulate(loss, factor * comm_.world_size());
}

at::Tensor LocalReplicas::clip(double norm_max) {
  const at::NoGradGuard no_gradients;
  auto squares = clip_gradients(gradients(), norm_max).to(at::kDouble).square().view({1});
  comm_.all_reduce_sum(squares);
  return squares.div(comm_.world_size()).sqrt().select(0, 0);
}

void LocalReplicas::update(double lr, const at::Tensor& skip) {
  Replicas::update(lr, skip);
  is_in_round_ = true;
}

void LocalReplicas::end_step(std::int64_t step) {
  const bool is_due = step % plan_.sync.every == 0 || step == plan_.schedule.steps;
  if (!is_due) return;
  const at::NoGradGuard no_gradients;
  if (is_diloco()) {
    move_outer();
  } else {
    average_all();
  }
  copy_all(agreed_.windows, parameters_);
  is_in_round_ = false;
}

/// Moments as well: those of one rank alone say nothing of the weights that all go on from.
void LocalReplicas::average_all() {
  agreed_.row.copy_(mean_over_ranks(comm_, parameters_).row);
  for (const auto* const moments : {&optimizer().first_moments(), &optimizer().second_moments()})
    copy_all(mean_over_ranks(comm_, *moments).windows, *moments);
}

/// Algorithm 1 of arXiv 2311.08105, lines 12 to 14: the outer gradient is how far the mean has come
/// from where all began, and Nesterov's momentum is that of torch.optim.SGD.
void LocalReplicas::move_outer() {
  const auto gradient = agreed_.row - mean_over_ranks(comm_, parameters_).row;
  const double momentum = plan_.sync.outer_momentum;
  momentum_.row.mul_(momentum).add_(gradient);
  agreed_.row.sub_(gradient.add(momentum_.row, momentum), plan_.sync.outer_lr);
}

/// Where ranks are the same nothing of theirs need be written.
GroupStems LocalReplicas::prepare_save() {
  GroupStems left_out;
  if (!is_in_round_) left_out.insert(kRoundStem);
  const bool are_moments_same = comm_.world_size() == 1 || (!is_in_round_ && !is_diloco());
  if (are_moments_same) left_out.insert(kRanksStem);
  return left_out;
}

StateTensors LocalReplicas::state() const {
  const auto& first = optimizer().first_moments();
  const auto& second = optimizer().second_moments();
  StateTensors state;
  append_tensors(state.model, names_, agreed_.windows);
  append_of_first(state.optimizer, names_, first, "exp_avg.", comm_);
  append_of_first(state.optimizer, names_, second, "exp_avg_sq.", comm_);
  if (is_diloco()) append_tensors(state.sync, names_, momentum_.windows, "outer_momentum.");
  append_own(state.ranks, names_, first, "exp_avg.", comm_);
  append_own(state.ranks, names_, second, "exp_avg_sq.", comm_);
  append_own(state.round, names_, parameters_, "", comm_);
  return state;
}

std::vector<at::Tensor> LocalReplicas::held_beside() const {
  std::vector<at::Tensor> held{agreed_.row};
  if (is_diloco()) held.push_back(momentum_.row);
  return held;
}

}  // namespace tj::trainer
