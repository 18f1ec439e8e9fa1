// What the kernel says about a process of this machine.
#pragma once
#include <sys/types.h>

#include <optional>

namespace tj::trainer {

struct ProcessStat {
  char state = 0;  // 'R', 'S', 'D', 'T' (stopped by a signal), 't' (by a debugger), 'Z'...
  pid_t parent = 0;
  pid_t group = 0;
};

/// Of proc(5); none when there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);
/// Its state alone.
std::optional<char> process_state(pid_t pid);

}  // namespace tj::trainer
