#include "trainer/comm/last_gradient.h"

#include <torch/torch.h>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tj::trainer {
namespace {
using torch::autograd::variable_list;
}

/// Tensors hold their accumulators weakly.
struct LastGradient::Watched {
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
};

LastGradient::LastGradient(const std::vector<at::Tensor>& parameters)
    : watched_(std::make_unique<Watched>()),
      at_(std::make_shared<Clock::time_point>(Clock::now())) {
  for (const auto& parameter : parameters) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [at = at_](const variable_list& outputs, const variable_list&) {
          *at = Clock::now();
          return outputs;
        }));
    watched_->accumulators.push_back(accumulator);
  }
}

LastGradient::~LastGradient() = default;

}  // namespace tj::trainer
