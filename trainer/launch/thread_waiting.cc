#include "trainer/launch/thread_waiting.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "contract/launch_env.h"
#include "trainer/launch/host.h"

namespace tj::trainer {
namespace {

/// Some microseconds: what threads that run wait for each other mostly.
constexpr const char* kShortSpin = "1000";

/// "0.20 0.18 0.12 1/80 11206": the fourth word begins with it (proc_loadavg(5)).
int runnable_threads(const std::filesystem::path& proc) {
  std::ifstream file(proc / "loadavg");
  double minutes = 0;
  int runnable = 0;
  file >> minutes >> minutes >> minutes >> runnable;
  return file ? runnable : 0;
}

}  // namespace

CoreDemand core_demand(const std::filesystem::path& proc) {
  const auto ranks_here = process_env("LOCAL_WORLD_SIZE");
  const auto ranks = ranks_here ? parse_int("LOCAL_WORLD_SIZE", *ranks_here, 1, 1 << 16) : 1;
  const int cores = usable_cores();
  return {.runnable = std::max(1, runnable_threads(proc)),
          .share = std::max(1, cores / (ranks ? *ranks : 1)),
          .cores = std::max(cores, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)))};
}

bool are_cores_wanted(const CoreDemand& demand) {
  return demand.runnable - 1 + demand.share > demand.cores;
}

void let_threads_sleep_soon() {
  if (process_env("OMP_WAIT_POLICY")) return;
  ::setenv("GOMP_SPINCOUNT", kShortSpin, /*overwrite=*/0);
}

}  // namespace tj::trainer
