// What the first process of a node says while a run starts, where the log is in a platform's words
// (report/platform_log.h): from the plan and from what the engine has found.
#pragma once
#include <string>

#include "trainer/report/platform_log.h"
#include "trainer/train/plan.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

bool says_phases(const TrainPlan& plan, const ProcessEnv& env);

/// The banner and the first phase, before anything is looked at.
std::string first_phase_lines(const ProcessEnv& env, const NodeGpus& gpus);

/// The other four, once it is known what carries the collectives and before the ranks meet.
std::string other_phase_lines(const TrainPlan& plan, const ProcessEnv& env,
                              const std::string& collectives, const EnvironmentWords& environment);

}  // namespace tj::trainer
