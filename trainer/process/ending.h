// How a process of the trainer ends: last words for the operator, the cause as the last line on the
// screen, and an end in any case.
#pragma once
#include <chrono>
#include <functional>
#include <optional>

#include "contract/progress.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// The last things a process does take so long at most: a disk, a pipe or a rank that does not
/// answer any more must not keep it.
inline constexpr std::chrono::seconds kEndMax{10};

/// Does the last things, and ends the process with `code` when they are done or kEndMax has passed.
/// No destructor runs: those of libtorch's threads and sockets could wait for a rank that is gone,
/// with nobody watching.
[[noreturn]] void end_process(int code, const std::function<void()>& last_things);

/// Writes the termination message, prints the cause with its rank, and returns the exit code; ends
/// the process with it when that takes longer than kEndMax.
int end_with(const Failure& failure, const ProcessEnv& env, std::optional<long long> step,
             const std::optional<SavedStep>& last_checkpoint = {});

}  // namespace tj::trainer
