// `trainer launch`: from the launch environment to a joint exit code. `trainer env`: the first half
// of it.
#pragma once
#include "trainer/launch/options.h"

namespace tj::trainer {

/// Returns the exit code: that of the first failure, 127 or 126 when the command could not be
/// started, exit_code::kBadConfig for bad launch variables.
int launch(const LaunchOptions& options);

/// `trainer env`: prints who this worker is, and starts nothing. Fails as launch does.
int show_env(const EnvOptions& options);

}  // namespace tj::trainer
