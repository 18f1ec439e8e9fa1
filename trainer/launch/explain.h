// What was found out about this worker, as a table for people. Pure.
#pragma once
#include <span>
#include <string>

#include "trainer/launch/launch_plan.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

/// The convention and why, one line for each value with its origin, then `network`, and what was
/// not followed.
std::string explain(const LaunchPlan& plan, std::span<const Setting> network = {});

}  // namespace tj::trainer
