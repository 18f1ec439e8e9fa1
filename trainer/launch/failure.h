// Which process is to blame, and how that is told: the exit code, the last line, the termination
// message. Pure.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "contract/outcome.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// How one process of the worker ended.
struct ProcessEnd {
  ProcessEnv env;
  pid_t pid = 0;
  int exit_code = 0;           // 128+n after signal n
  bool stopped_by_us = false;  // ended by a signal after we had sent it one
  std::string cause = "";      // what we know of it; words of its own come first
};

/// The exit code for a status of waitpid.
int exit_code_of(int wait_status);

/// The first failure, unless it is collateral (a lost peer) and the later one is a cause of its
/// own: a process that dies slowly lets its peers notice before we do.
bool blames_later(const ProcessEnd& first, const ProcessEnd& later);

/// The child's own last words with its rank, or ours about it. `words` is what it left, in whatever
/// form.
Outcome outcome_of(const ProcessEnd& end, const std::string& words);

/// "rank 3 (local rank 1, pid 123) failed first: killed by signal 9 (SIGKILL); the others were
/// stopped"
std::string describe_failure(const ProcessEnd& end, const std::string& words);

}  // namespace tj::trainer
