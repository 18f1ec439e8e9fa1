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

std::vector<Metric> metrics_of_evaluations(const Workload& workload) {
  auto metrics = workload.metrics();
  std::erase_if(metrics, [](const Metric& metric) { return metric.is_of_training; });
  return metrics;
}

}  // namespace

std::optional<EvalReport> evaluate(const EvaluationInputs& inputs, std::int64_t step) {
  const auto begun = std::chrono::steady_clock::now();
  const auto& plan = inputs.plan;
  auto& learner = inputs.learner;
  PassReader passes(inputs.source, plan, inputs.communicator.rank(), 0, inputs.clock);
  const auto count = batches_of(plan, inputs.source) * plan.accumulation;
  double weight = 0;
  std::optional<Picture> picture;
  for (std::int64_t number = 0; number < count; ++number) {
    if (number > 0 && inputs.is_stopped()) {
      learner.take_measured();
      return std::nullopt;
    }
    const auto pass = passes.next();
    weight += static_cast<double>(pass.weight);
    learner.measure(pass.batch);
    if (number == 0 && inputs.workload.draws_pictures()) picture = learner.picture(pass.batch);
  }
  const auto sums = learner.take_measured();
  weight = sum_over_ranks(inputs.communicator, {weight})[0];
  if (weight == 0) throw BadDataError("--eval-data: " + inputs.workload.nothing_counts());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  return EvalReport{.step = step,
                    .loss = sums.loss / weight,
                    .metrics = metric_values(metrics_of_evaluations(inputs.workload), sums, weight),
                    .counted = inputs.workload.words().counted,
                    .weight = static_cast<std::int64_t>(weight),
                    .seconds = taken.count(),
                    .picture = std::move(picture)};
}

std::vector<MetricValue> metric_values(const std::vector<Metric>& metrics, const SampleSums& sums,
                                       double weight) {
  std::vector<MetricValue> values;
  for (const auto& metric : metrics) {
    values.push_back({.name = metric.name,
                      .label = metric.label,
                      .unit = metric.unit,
                      .decimals = metric.decimals,
                      .value = metric.finish(sums.metrics, weight)});
  }
  return values;
}

}  // namespace tj::trainer
