#include "trainer/train/replicas.h"

#include <torch/types.h>

#include <algorithm>

#include "trainer/train/gradients.h"
#include "trainer/train/tuning.h"
#include "trainer/train/zero/zero.h"

namespace tj::trainer {

std::vector<UpdateRule> rules_of(const TrainPlan& plan, const Workload& workload) {
  auto rules = update_rules_of(plan, workload);
  TORCH_CHECK(rules, "a plan is made with groups that match");
  return std::move(*rules);
}

bool are_finite(const std::vector<at::Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const at::Tensor& tensor) {
    return at::isfinite(tensor.detach()).all().item<bool>();
  });
}

Replicas::Replicas(const TrainPlan& plan, const Workload& workload) : plan_(plan) {
  const auto tensors = tensors_of(plan, workload);
  const auto rules = rules_of(plan, workload);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    if (tensors[index].kind != TensorKind::trained) continue;
    names_.push_back(tensors[index].name);
    rules_.push_back(rules[index]);
  }
}

void Replicas::adopt(const std::vector<at::Tensor>& trained) {
  parameters_ = trained;
  optimizer_ = std::make_unique<AdamW>(parameters_, rules_);
  if (plan_.ema_decay == 0) return;
  for (const auto& parameter : parameters_) averages_.push_back(parameter.detach().clone());
}

at::Tensor Replicas::unscale(double scale) { return unscale_gradients(gradients(), scale); }

void Replicas::update(double lr, const at::Tensor& skip) { optimizer_->step(lr, skip); }

void Replicas::move_averages() {
  if (!averages_.empty()) update_averages(averages_, parameters_, plan_.ema_decay);
}

bool Replicas::is_finite_here() const { return are_finite(parameters_); }

StateTensors Replicas::state() const {
  StateTensors state;
  append_tensors(state.model, names_, parameters_);
  append_tensors(state.optimizer, names_, optimizer_->first_moments(), "exp_avg.");
  append_tensors(state.optimizer, names_, optimizer_->second_moments(), "exp_avg_sq.");
  if (plan_.ema_decay > 0) append_tensors(state.ema, names_, averages_);
  return state;
}

std::int64_t Replicas::held_bytes() const {
  auto all = gradients();
  const auto beside = held_beside();
  for (const auto* const list : {&parameters_, &optimizer_->first_moments(),
                                 &optimizer_->second_moments(), &averages_, &beside})
    all.insert(all.end(), list->begin(), list->end());
  return distinct_bytes(all);
}

std::vector<at::Tensor> Replicas::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& parameter : parameters_) all.push_back(parameter.grad());
  return all;
}

void Replicas::complete_gradients() {
  for (const auto& parameter : parameters_)
    if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
}

void Replicas::drop_gradients() {
  for (const auto& parameter : parameters_) parameter.mutable_grad().reset();
}

void Replicas::accumulate(const at::Tensor& loss, double factor) {
  if (loss.requires_grad()) (loss * factor).backward();
}

}  // namespace tj::trainer
