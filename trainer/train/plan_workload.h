// The workload that a plan names.
#pragma once
#include "trainer/models/gpt2_workload.h"
#include "trainer/train/plan.h"

namespace tj::trainer {

/// Needs a plan with its vocabulary settled.
inline Gpt2Workload workload_of(const TrainPlan& plan) {
  return {plan.model, {.dropout = plan.dropout, .ignored_token = plan.ignored_token}};
}

}  // namespace tj::trainer
