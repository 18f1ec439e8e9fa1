// `trainer plan`: what a training will cost, before it begins. From the command line to an exit
// code.
#pragma once
#include "trainer/workload/workload.h"

namespace tj::trainer {

/// argv[0] is "plan", and its flags follow. Rank 0 prints the answer; the cause of a failure is the
/// last line.
int run_plan(int argc, const char* const* argv, Registry registry);

}  // namespace tj::trainer
