// From the command line to an exit code: the whole of `trainer train`.
#pragma once
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// Prints the cause last and writes the last words when it fails.
int run_engine(int argc, const char* const* argv);

}  // namespace tj::trainer
