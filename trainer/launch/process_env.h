// Who this process is: read from the launch environment, whatever wrote it. WORLD_SIZE and RANK
// count processes here.
#pragma once
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"

namespace tj::trainer {

/// One process of a job. Rules, first match wins (wider detection comes later, in this one place):
///  1. LOCAL_RANK and LOCAL_WORLD_SIZE are set: a launcher (ours or torchrun) counted processes.
///  One alone is refused.
///  2. any of WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT is set: the operator's contract, one
///  process per worker.
///  3. none: a single process.
struct ProcessEnv {
  int world_size = 1;  // processes
  int rank = 0;
  int local_rank = 0;  // on this worker
  int local_world_size = 1;
  int worker_index = 0;  // GROUP_RANK, or the worker's RANK
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  std::string job_uid;  // with attempt: the rendezvous key; empty outside of a job
  int attempt = 0;
  std::string node_name;  // NODE_NAME, or the host's name
  std::string origin;     // "launcher", "operator", "none (single process)": for the start-up table
  bool operator==(const ProcessEnv&) const = default;
};

/// Fails with Code::invalid; the error names the variable, its value and what is right.
Result<ProcessEnv> process_env_from(const EnvLookup& lookup);

/// True when any of WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT is set.
bool has_operator_env(const EnvLookup& lookup);

/// torchrun's variables for one child, to be set over the inherited environment.
std::vector<EnvVar> to_env(const ProcessEnv& env);

}  // namespace tj::trainer
