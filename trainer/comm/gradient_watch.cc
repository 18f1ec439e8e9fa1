#include "trainer/comm/gradient_watch.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>

namespace tj::trainer {
namespace {
using torch::autograd::variable_list;
}

/// On a GPU backward has a thread of its own; it has ended what it does here before the pass ends.
struct GradientWatch::State {
  explicit State(PhaseClock& of) : clock(of) {}

  void note() {
    clock.gradient_made();
    if (++made != accumulators.size()) return;
    last_made_at = std::chrono::steady_clock::now();
    if (reduces) waiting.reset(new PhaseClock::Scope(clock.collective("all-reduce of gradients")));
  }

  PhaseClock& clock;
  /// Tensors hold theirs weakly.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
  std::size_t made = 0;  // in this pass
  bool reduces = false;
  std::chrono::steady_clock::time_point begun_at;  // the pass
  std::chrono::steady_clock::time_point last_made_at;
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
  watch_.state_->begun_at = std::chrono::steady_clock::now();
}

double GradientWatch::Pass::seconds_to_last_gradient() const {
  const auto& state = *watch_.state_;
  if (state.made < state.accumulators.size()) return 0;
  return std::chrono::duration<double>(state.last_made_at - state.begun_at).count();
}

GradientWatch::Pass::~Pass() { watch_.state_->waiting.reset(); }

}  // namespace tj::trainer
