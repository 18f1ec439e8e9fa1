#include "trainer/train/adamw.h"

#include <torch/torch.h>

namespace tj::trainer {

namespace {
constexpr double kEps = 1e-8;
}

AdamW::AdamW(const std::vector<at::Tensor>& parameters, const AdamWOptions& options)
    : options_(options), parameters_(parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : parameters_) {
    first_moments_.push_back(torch::zeros_like(parameter));
    second_moments_.push_back(torch::zeros_like(parameter));
    step_counts_.push_back(torch::zeros({}, torch::kFloat32));
  }
}

AdamW::~AdamW() = default;

void AdamW::set_step_count(std::int64_t steps) {
  for (auto& count : step_counts_) count.fill_(static_cast<double>(steps));
}

void AdamW::step(double lr) {
  step_some(lr, /*matrices=*/true, options_.weight_decay);
  step_some(lr, /*matrices=*/false, 0.0);
}

void AdamW::step_some(double lr, bool matrices, double weight_decay) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters, gradients, first, second, counts;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    if ((parameters_[index].dim() >= 2) != matrices) continue;
    parameters.push_back(parameters_[index]);
    gradients.push_back(parameters_[index].grad());
    first.push_back(first_moments_[index]);
    second.push_back(second_moments_[index]);
    counts.push_back(step_counts_[index].add_(1));
  }
  at::_fused_adamw_(parameters, gradients, first, second, {}, counts, lr, options_.beta1,
                    options_.beta2, weight_decay, kEps, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace tj::trainer
