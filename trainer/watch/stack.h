// Where a thread of this process is, asked from another one.
#pragma once
#include <pthread.h>

#include <chrono>
#include <string>
#include <vector>

namespace tj::trainer {

/// Call once, before stack_of(), from any thread: takes a real-time signal for the question.
void prepare_stacks();

/// The frames of `thread`, innermost first, readable names without arguments; empty when it does
/// not answer within `limit` (it is stopped, or waits in the kernel for a disk). One caller at a
/// time. Async-signal-safe on the asked side, but for backtrace()'s first call, which
/// prepare_stacks() has made.
std::vector<std::string> stack_of(pthread_t thread, std::chrono::milliseconds limit);

}  // namespace tj::trainer
