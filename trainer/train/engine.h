// From the command line to an exit code: the whole of `trainer-engine`.
#pragma once
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// Prints the cause last and writes the last words when it fails.
int run_engine(int argc, const char* const* argv, Registry registry);

/// Prints what a workload says of the data that flags of `trainer plan` name, or why it can't be
/// trained on. Returns an exit code.
int describe_data(int argc, const char* const* argv, Registry registry);

/// The program itself, by its first argument: "train", which may be missing, what `trainer train`
/// becomes; "check", the part of `trainer check` that needs the other ranks; "describe-data"; or
/// the name of a workload's command (command.h).
[[noreturn]] void engine_main(int argc, const char* const* argv, Registry registry);

}  // namespace tj::trainer
