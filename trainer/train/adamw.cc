#include "trainer/train/adamw.h"

#include <torch/types.h>

#include <map>

namespace tj::trainer {

namespace {
constexpr double kEps = 1e-8;
}

AdamW::AdamW(const std::vector<at::Tensor>& parameters, const std::vector<UpdateRule>& rules) {
  TORCH_CHECK(parameters.size() == rules.size(), "one rule for each parameter");
  const at::NoGradGuard no_grad;
  std::map<UpdateRule, Group> by_rule;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const auto& parameter = parameters[index];
    first_moments_.push_back(torch::zeros_like(parameter));
    second_moments_.push_back(torch::zeros_like(parameter));
    auto& group = by_rule[rules[index]];
    group.parameters.push_back(parameter);
    group.first.push_back(first_moments_.back());
    group.second.push_back(second_moments_.back());
  }
  if (parameters.empty()) return;
  count_ = torch::zeros({}, parameters.front().options().requires_grad(false));
  for (auto& [rule, group] : by_rule) {
    group.rule = rule;
    // The kernel wants one for each parameter, and only reads them.
    group.counts.assign(group.parameters.size(), count_);
    groups_.push_back(std::move(group));
  }
}

AdamW::~AdamW() = default;

void AdamW::step(double lr, const at::Tensor& skip) {
  const at::NoGradGuard no_grad;
  const auto found_inf = skip.defined() ? std::optional(skip) : std::nullopt;
  ++step_count_;
  if (count_.defined()) count_.fill_(static_cast<double>(step_count_));
  for (auto& group : groups_) {
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : group.parameters) gradients.push_back(parameter.grad());
    at::_fused_adamw_(group.parameters, gradients, group.first, group.second, {}, group.counts,
                      lr * group.rule.lr_scale, group.rule.beta1, group.rule.beta2,
                      group.rule.weight_decay, kEps, /*amsgrad=*/false, /*maximize=*/false,
                      /*grad_scale=*/{}, found_inf);
  }
}

}  // namespace tj::trainer
