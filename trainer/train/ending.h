// How a process of the trainer ends other than well: last words for the operator, the cause as the
// last line on the screen.
#pragma once
#include <optional>

#include "trainer/launch/process_env.h"
#include "trainer/train/failure.h"

namespace tj::trainer {

/// Writes the termination message, prints the cause with its rank, and returns the exit code.
int end_with(const Failure& failure, const ProcessEnv& env, std::optional<long long> step);

}  // namespace tj::trainer
