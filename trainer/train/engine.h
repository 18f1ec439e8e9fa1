// From the command line to an exit code: the whole of `trainer-engine`.
#pragma once
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// Prints the cause last and writes the last words when it fails.
int run_engine(int argc, const char* const* argv, Registry registry);

/// The program itself: what `trainer train ...` becomes, and the part of `trainer check` that needs
/// the other ranks. The first argument is the word "train", which may be missing, or "check".
[[noreturn]] void engine_main(int argc, const char* const* argv, Registry registry);

}  // namespace tj::trainer
