// Decides which processes this worker becomes: how many, who each is, what it finds in its
// environment. Pure: the machine's facts come in as WorkerHost.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/launch/options.h"
#include "trainer/launch/process_env.h"

namespace tj::trainer {

struct WorkerHost {
  int gpus = 0;       // visible ones
  int cores = 1;      // usable ones
  int free_port = 0;  // of 127.0.0.1, for a worker that is alone
};

struct LaunchPlan {
  std::vector<ProcessEnv> processes;  // by local rank, never empty
  std::optional<int> omp_threads;     // OMP_NUM_THREADS of each; absent: the user has set it
  std::string nproc_origin;           // "--nproc", "NPROC_PER_NODE", "GPUs", "no GPU"
  std::string worker_origin;          // "WORLD_SIZE and RANK", or "no launch variables"
  int gpus = 0;
};

/// Fails with Code::invalid; the error names the variable, its value and what is right.
Result<LaunchPlan> plan_launch(const EnvLookup& lookup, NprocChoice nproc, const WorkerHost& host);

/// Everything that is set over the inherited environment of one process.
std::vector<EnvVar> child_env(const LaunchPlan& plan, const ProcessEnv& process);

/// One line for people: what was decided, and from what.
std::string describe(const LaunchPlan& plan);

}  // namespace tj::trainer
