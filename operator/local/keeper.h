// The keeper process of one child: see child_process.h. It runs in a fork without exec, so that
// nothing here allocates or takes a lock.
#pragma once

namespace tj {

/// What a keeper tells over its pipe, in this order; each is one write.
struct KeeperNote {
  enum Kind : int { started = 1, start_failed = 2, ended = 3 };
  int kind = 0;
  int value = 0;  // started: pid; start_failed: errno; ended: exit code
};

struct KeeperOrder {
  int output_fd = -1;  // becomes stdout and stderr
  int notes_fd = -1;
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* env = nullptr;
  const char* working_folder = nullptr;
  int parent_pid = 0;
};

/// Signals to the keeper: SIGUSR1 passes SIGTERM on to the process, SIGTERM (also the parent's
/// death) kills everything.
[[noreturn]] void run_keeper(const KeeperOrder& order);

}  // namespace tj
