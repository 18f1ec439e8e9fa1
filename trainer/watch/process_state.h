// What the kernel says about a process of this machine.
#pragma once
#include <sys/types.h>

#include <optional>

namespace tj::trainer {

/// proc(5)'s letter: 'R', 'S', 'D', 'T' (stopped by a signal), 't' (by a debugger), 'Z'...; none
/// when there is no such process.
std::optional<char> process_state(pid_t pid);

}  // namespace tj::trainer
