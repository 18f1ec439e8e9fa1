// One process of a job: what it reads about itself, and what a launcher tells it. WORLD_SIZE and
// RANK count processes here.
#pragma once
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/names.h"

namespace tj::trainer {

/// Set by a launcher for its processes, which see only what it has made of a platform's variables.
inline constexpr const char* kEnvOnPlatform = "TRAININGJOB_ON_PLATFORM";

struct ProcessEnv {
  int world_size = 1;  // processes
  int rank = 0;
  int local_rank = 0;  // on this worker
  int local_world_size = 1;
  int worker_index = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = names::kMasterPortDefault;
  std::string job_uid;  // with attempt: the rendezvous key; empty outside of a job
  int attempt = 0;
  std::string node_name;
  std::string origin;           // "WORLD_SIZE and RANK", "SLURM", ...: for the start-up table
  bool is_on_platform = false;  // by a platform's WORLD_SIZE and RANK, without our operator
  bool operator==(const ProcessEnv&) const = default;
};

/// torchrun's variables for one child, to be set over the inherited environment.
std::vector<EnvVar> to_env(const ProcessEnv& env);

}  // namespace tj::trainer
