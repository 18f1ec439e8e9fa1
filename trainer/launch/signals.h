// Signals as readable events: blocked for the whole process, so that PID 1 sees them too, and read
// from one descriptor.
#pragma once
#include <string>
#include <vector>

#include "trainer/process/unique_fd.h"

namespace tj::trainer {

class SignalQueue {
 public:
  /// Blocks SIGCHLD and what is forwarded: TERM, INT, HUP, QUIT, USR1, USR2; ignores SIGPIPE. A
  /// signal among HUP, INT and QUIT that was ignored before (nohup, a shell's `&`) stays ignored.
  SignalQueue();

  int fd() const { return fd_.value(); }
  /// Everything that has arrived; never blocks.
  std::vector<int> read_all();

 private:
  UniqueFd fd_;
};

/// TERM, INT, HUP and QUIT ask for an end; USR1 and USR2 are only passed on.
bool asks_to_stop(int signal);

/// "signal 15 (SIGTERM)"
std::string describe_signal(int signal);

}  // namespace tj::trainer
