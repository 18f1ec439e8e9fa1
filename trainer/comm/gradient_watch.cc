#include "trainer/comm/gradient_watch.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tj::trainer {
namespace {
using torch::autograd::variable_list;
}

/// On a GPU backward has a thread of its own; it has ended what it does here before the pass ends.
struct GradientWatch::State {
  explicit State(PhaseClock& of) : clock(of) {}

  void note() {
    clock.gradient_made();
    if (++made == accumulators.size() && reduces)
      waiting.reset(new PhaseClock::Scope(clock.collective("all-reduce of gradients")));
  }

  PhaseClock& clock;
  /// Tensors hold theirs weakly.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
  std::size_t made = 0;  // in this pass
  bool reduces = false;
  std::unique_ptr<PhaseClock::Scope> waiting;
};

GradientWatch::GradientWatch(const std::vector<at::Tensor>& parameters, PhaseClock& clock)
    : state_(std::make_shared<State>(clock)) {
  for (const auto& parameter : parameters) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [weak = std::weak_ptr(state_)](const variable_list& outputs, const variable_list&) {
          if (const auto state = weak.lock()) state->note();
          return outputs;
        }));
    state_->accumulators.push_back(accumulator);
  }
}

GradientWatch::~GradientWatch() = default;

GradientWatch::Pass::Pass(GradientWatch& watch, bool reduces) : watch_(watch) {
  watch_.state_->made = 0;
  watch_.state_->reduces = reduces;
}

GradientWatch::Pass::~Pass() { watch_.state_->waiting.reset(); }

}  // namespace tj::trainer
