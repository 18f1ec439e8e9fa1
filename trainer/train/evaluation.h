// The loss on data that is not trained on: always on the same samples, so that it can be compared
// from step to step, and without dropout.
#pragma once
#include <functional>
#include <optional>

#include "trainer/comm/communicator.h"
#include "trainer/report/progress.h"
#include "trainer/train/learner.h"
#include "trainer/train/plan.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/sample_source.h"

namespace tj::trainer {

struct EvaluationInputs {
  const TrainPlan& plan;
  const Workload& workload;
  const SampleSource& source;
  Communicator& communicator;
  Learner& learner;
  PhaseClock& clock;
  std::function<bool()> is_stopped;  // collective, before each pass but the first
};

/// Collective, between two steps: the mean loss over all targets after `step`. It changes nothing
/// of the training. None when somebody was asked to stop meanwhile. Throws BadDataError.
std::optional<EvalReport> evaluate(const EvaluationInputs& inputs, std::int64_t step);

/// What the workload tells beside the loss, of sums over all ranks and passes.
std::vector<MetricValue> metric_values(const std::vector<Metric>& metrics, const SampleSums& sums,
                                       double weight);

}  // namespace tj::trainer
