#include "trainer/train/evaluation.h"

#include <algorithm>
#include <chrono>

#include "trainer/comm/agreement.h"
#include "trainer/train/pass_reader.h"
#include "trainer/values/failure.h"

namespace tj::trainer {
namespace {

/// No more than all of the data once, but one batch at least.
std::int64_t batches_of(const TrainPlan& plan, const SampleSource& source) {
  const auto whole = source.sample_count() / plan.batch_size;
  return std::clamp<std::int64_t>(plan.eval_batches, 1, std::max<std::int64_t>(1, whole));
}

}  // namespace

std::optional<EvalReport> evaluate(const EvaluationInputs& inputs, std::int64_t step) {
  const auto begun = std::chrono::steady_clock::now();
  const auto& plan = inputs.plan;
  auto& learner = inputs.learner;
  PassReader passes(inputs.source, plan, inputs.communicator.rank(), 0, inputs.clock);
  const auto count = batches_of(plan, inputs.source) * plan.accumulation;
  double targets = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    if (number > 0 && inputs.is_stopped()) {
      learner.take_measured();
      return std::nullopt;
    }
    const auto pass = passes.next();
    targets += static_cast<double>(learner.model().weight(pass.batch));
    learner.measure(pass.batch);
  }
  const double loss = learner.take_measured();
  targets = sum_over_ranks(inputs.communicator, {targets})[0];
  if (targets == 0) {
    throw BadDataError("--eval-data: every target is the token " +
                       std::to_string(plan.ignored_token.value_or(0)) + " of --ignore-token");
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  return EvalReport{.step = step,
                    .loss = loss / targets,
                    .targets = static_cast<std::int64_t>(targets),
                    .seconds = taken.count()};
}

}  // namespace tj::trainer
