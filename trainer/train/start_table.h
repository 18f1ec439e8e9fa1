// The rows of the start-up table that no flag gives: what the engine has found and computed.
#pragma once
#include <vector>

#include "trainer/train/plan.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

/// The rows of the plan, and what follows from it for this rank. Needs open data.
std::vector<Setting> start_table(const TrainPlan& plan, const Workload& workload,
                                 const SampleSource& source, const ProcessEnv& env);

}  // namespace tj::trainer
