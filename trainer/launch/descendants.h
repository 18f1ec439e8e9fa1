// Finds the processes whose parent we are: our own, and orphans that the kernel has given to us.
#pragma once
#include <sys/types.h>

#include <vector>

namespace tj::trainer {

struct ChildProcess {
  pid_t pid = 0;
  pid_t group = 0;
  bool zombie = false;
};

/// Makes this process the parent of its orphaned descendants (PID 1 is that anyway).
void adopt_orphans();

/// Read from /proc; empty where that can't be read.
std::vector<ChildProcess> child_processes();

}  // namespace tj::trainer
