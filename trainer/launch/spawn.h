// Starts one process in a process group of its own, tied to the life of the launcher.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {

struct SpawnRequest {
  std::vector<std::string> command;  // looked up in PATH
  std::vector<EnvVar> env;           // set over our own environment
  bool capture_output = false;       // else the child writes to our stdout and stderr itself
};

struct Spawned {
  pid_t pid = 0;  // also its process group
  UniqueFd out;   // read ends, open only with capture_output
  UniqueFd err;
};

/// Returns once the command runs. Fails with Code::not_found (no such command), Code::forbidden (it
/// can't be executed) or Code::unavailable (no process or pipe to be had).
Result<Spawned> spawn(const SpawnRequest& request);

}  // namespace tj::trainer
