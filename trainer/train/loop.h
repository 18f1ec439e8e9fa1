// The training itself: from the first step to the last, or to the step after which somebody asks to
// stop.
#pragma once
#include <optional>

#include "trainer/checkpoint/claim.h"
#include "trainer/comm/communicator.h"
#include "trainer/report/reporter.h"
#include "trainer/train/out_sharing.h"
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

struct LoopInputs {
  const TrainPlan& plan;
  const Workload& workload;
  const SampleSource& source;
  const SampleSource* eval_source;  // null: no evaluation
  Communicator& communicator;
  const OutSharing& sharing;
  OutClaim claim;
  PhaseClock& clock;
  Reporter& reporter;
};

struct LoopEnd {
  std::optional<Failure> failure;
  std::int64_t last_step = 0;  // finished
  bool is_agreed = true;       // all ranks know how it ended, and are still there
};

/// Collective. Rank 0 speaks, reads and writes; the others get what they need from it.
LoopEnd train(const LoopInputs& inputs);

}  // namespace tj::trainer
