// What a rank of a run needs of memory by forecast, and which of its flags would take less. Pure.
#pragma once
#include <optional>

#include "trainer/predict/remedies.h"
#include "trainer/train/plan.h"
#include "trainer/train/plan_request.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

struct AdviceRequest {
  const PlanRequest& request;
  const TrainPlan& plan;
  const Workload& workload;
  RankRoom room = {};
  double process_bytes = 0;  // of a rank on the CPU, before its model is there
};
/// Absent: the workload has no formula for its activations, of which most depends.
std::optional<MemoryShortage> shortage_of(const AdviceRequest& asked);

}  // namespace tj::trainer
