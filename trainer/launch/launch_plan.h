// Decides which processes this worker becomes: how many, who each is, what it finds in its
// environment. Pure: the machine's facts come in as WorkerHost.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/launch/identity.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

struct LaunchPlan {
  Identity identity;
  std::vector<ProcessEnv> processes;  // by local rank, never empty
  std::optional<int> omp_threads;     // OMP_NUM_THREADS of each; absent: the user has set it
  Fact<std::string> threads;          // the same for people
  int gpus = 0;
  int restarts = 0;  // in place, so far
  int max_restarts = 0;
};

/// Fails with Code::invalid; the error names the variable or flag, its value and what is right.
Result<LaunchPlan> plan_launch(const EnvLookup& lookup, const IdentityOptions& options,
                               const WorkerHost& host);

/// The processes of a worker that is known already.
LaunchPlan plan_for(Identity identity, const EnvLookup& lookup, const WorkerHost& host);

/// The same worker once more. The attempt goes up with it, so that no process of the failed try is
/// met; workers of one job stay in step, because a failure of one ends the others too.
LaunchPlan restarted(LaunchPlan plan);

/// Everything that is set over the inherited environment of one process.
std::vector<EnvVar> child_env(const LaunchPlan& plan, const ProcessEnv& process);

/// One line for people: what was decided, and from what.
std::string describe(const LaunchPlan& plan);

}  // namespace tj::trainer
