// What was found out about this worker, as a table for people. Pure.
#pragma once
#include <string>

#include "trainer/launch/launch_plan.h"

namespace tj::trainer {

/// The convention and why, one line for each value with its origin, and what was not followed.
std::string explain(const LaunchPlan& plan);

}  // namespace tj::trainer
