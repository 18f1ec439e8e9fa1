#include "trainer/launch/launch_plan.h"

#include <algorithm>

#include "trainer/launch/process_identity.h"

namespace tj::trainer {
namespace {

/// All processes of the worker, or the one that the convention speaks of.
std::vector<ProcessEnv> processes_of(const Identity& id) {
  if (id.rank) return {process_of(id, id.local_rank->value)};
  std::vector<ProcessEnv> processes;
  for (int local_rank = 0; local_rank < id.nproc.value; ++local_rank)
    processes.push_back(process_of(id, local_rank));
  return processes;
}

}  // namespace

Result<LaunchPlan> plan_launch(const EnvLookup& lookup, const IdentityOptions& options,
                               const WorkerHost& host) {
  auto identity = identify({.lookup = lookup, .host = host, .options = options});
  if (!identity) return identity.error();
  return plan_for(*std::move(identity), lookup, host);
}

LaunchPlan plan_for(Identity identity, const EnvLookup& lookup, const WorkerHost& host) {
  LaunchPlan plan{.identity = std::move(identity), .processes = {}, .gpus = host.gpus};
  plan.processes = processes_of(plan.identity);
  if (const auto chosen = lookup("OMP_NUM_THREADS")) {
    plan.threads = {*chosen, "OMP_NUM_THREADS"};
    return plan;
  }
  if (const auto& own = plan.identity.cores) {
    plan.omp_threads = own->value;
    plan.threads = {std::to_string(own->value), own->origin};
    return plan;
  }
  const int nproc = plan.identity.nproc.value;
  plan.omp_threads = std::max(1, host.cores / nproc);
  plan.threads = {std::to_string(*plan.omp_threads),
                  "computed: " + std::to_string(host.cores) + " usable cores / " +
                      std::to_string(nproc) + (nproc == 1 ? " process" : " processes")};
  return plan;
}

LaunchPlan restarted(LaunchPlan plan) {
  ++plan.restarts;
  for (ProcessEnv& process : plan.processes) ++process.attempt;
  return plan;
}

std::vector<EnvVar> child_env(const LaunchPlan& plan, const ProcessEnv& process) {
  std::vector<EnvVar> env = to_env(process);
  env.push_back({"TORCHELASTIC_RESTART_COUNT", std::to_string(plan.restarts)});
  env.push_back({"TORCHELASTIC_MAX_RESTARTS", std::to_string(plan.max_restarts)});
  if (plan.omp_threads) env.push_back({"OMP_NUM_THREADS", std::to_string(*plan.omp_threads)});
  return env;
}

std::string describe(const LaunchPlan& plan) {
  const Identity& id = plan.identity;
  const int nproc = id.nproc.value;
  std::string line = "worker " + std::to_string(id.worker_index.value) + " of " +
                     std::to_string(id.worker_count.value) + " (" +
                     std::string(source_of(id.convention)) + "), ";
  if (id.rank) line += "its process " + std::to_string(id.local_rank->value) + " of ";
  line += std::to_string(nproc) + (nproc == 1 ? " process (" : " processes (") + id.nproc.origin +
          "), " + std::to_string(id.world_size()) + " in all, " + std::to_string(plan.gpus) +
          " GPUs visible, master " + id.master_addr.value + ":" +
          std::to_string(id.master_port.value);
  if (plan.omp_threads) line += ", OMP_NUM_THREADS=" + std::to_string(*plan.omp_threads);
  return line;
}

}  // namespace tj::trainer
