// `trainer launch`: from the launch environment to a joint exit code. `trainer env`: the first half
// of it.
#pragma once
#include "contract/result.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/options.h"
#include "trainer/launch/signals.h"

namespace tj::trainer {

/// Returns the exit code: that of the first failure, 127 or 126 when the command could not be
/// started, exit_code::kBadConfig for bad launch variables.
int launch(const LaunchOptions& options);

/// `trainer env`: prints who this worker is, and starts nothing. Fails as launch does.
int show_env(const EnvOptions& options);

/// Who this worker is. Where the variables leave open what WORLD_SIZE counts, the other launchers
/// are asked. Fails with Code::invalid for bad variables, else as exchange_statements() does.
Result<LaunchPlan> find_plan(const IdentityOptions& options, SignalQueue& signals);

}  // namespace tj::trainer
