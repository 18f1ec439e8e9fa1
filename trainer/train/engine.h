// From the command line to an exit code: the whole of `trainer train`.
#pragma once
#include "trainer/launch/process_env.h"
#include "trainer/train/failure.h"
#include "trainer/train/plan.h"

namespace tj::trainer {

/// Prints the cause last and writes the last words when it fails.
int run_engine(int argc, const char* const* argv);

}  // namespace tj::trainer
