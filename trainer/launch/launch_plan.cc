#include "trainer/launch/launch_plan.h"

#include <algorithm>
#include <climits>

namespace tj::trainer {
namespace {

struct Nproc {
  int count = 1;
  std::string origin;
};

Error invalid(std::string subject, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::move(subject),
               .retry_after = {}};
}

/// The contract, or for a worker that is alone: the contract it would have been given.
Result<LaunchEnv> worker_from(const EnvLookup& lookup, const WorkerHost& host) {
  if (has_operator_env(lookup)) return from_env(lookup);
  return from_env([&](std::string_view name) -> std::optional<std::string> {
    if (name == "WORLD_SIZE") return "1";
    if (name == "RANK") return "0";
    if (name == "MASTER_ADDR") return "127.0.0.1";
    if (name == "MASTER_PORT") return std::to_string(host.free_port);
    return lookup(name);
  });
}

Nproc choose_nproc(const LaunchEnv& worker, NprocChoice choice, const WorkerHost& host) {
  using enum NprocChoice::Source;
  if (choice.source == fixed) return {choice.count, "--nproc"};
  if (choice.source == environment && worker.nproc_per_node) {
    return {*worker.nproc_per_node, "NPROC_PER_NODE"};
  }
  if (host.gpus > 0) return {host.gpus, "GPUs"};
  return {1, "no GPU"};
}

}  // namespace

Result<LaunchPlan> plan_launch(const EnvLookup& lookup, NprocChoice choice,
                               const WorkerHost& host) {
  if (const auto local_rank = lookup("LOCAL_RANK")) {
    return invalid("LOCAL_RANK", "is \"" + *local_rank +
                                     "\": a launcher has started this process already; it must be "
                                     "unset here, or the command be run without trainer launch");
  }
  const auto worker = worker_from(lookup, host);
  if (!worker) return worker.error();
  const Nproc nproc = choose_nproc(*worker, choice, host);
  if (nproc.count > kNprocMax) {
    return invalid(nproc.origin, "is " + std::to_string(nproc.count) +
                                     "; it must be a number of processes from 1 to " +
                                     std::to_string(kNprocMax));
  }
  if (worker->world_size > INT_MAX / nproc.count) {
    return invalid("WORLD_SIZE", "is " + std::to_string(worker->world_size) + "; with " +
                                     std::to_string(nproc.count) +
                                     " processes per worker it must be at most " +
                                     std::to_string(INT_MAX / nproc.count));
  }
  LaunchPlan plan{
      .processes = {},
      .omp_threads = {},
      .nproc_origin = nproc.origin,
      .worker_origin = has_operator_env(lookup) ? "WORLD_SIZE and RANK" : "no launch variables",
      .gpus = host.gpus};
  if (!lookup("OMP_NUM_THREADS")) plan.omp_threads = std::max(1, host.cores / nproc.count);
  for (int local_rank = 0; local_rank < nproc.count; ++local_rank) {
    plan.processes.push_back({.world_size = worker->world_size * nproc.count,
                              .rank = worker->rank * nproc.count + local_rank,
                              .local_rank = local_rank,
                              .local_world_size = nproc.count,
                              .worker_index = worker->rank,
                              .master_addr = worker->master_addr,
                              .master_port = worker->master_port,
                              .job_uid = worker->job_uid,
                              .attempt = worker->attempt,
                              .node_name = lookup("NODE_NAME").value_or(""),
                              .origin = "launcher"});
  }
  return plan;
}

std::vector<EnvVar> child_env(const LaunchPlan& plan, const ProcessEnv& process) {
  std::vector<EnvVar> env = to_env(process);
  if (plan.omp_threads) env.push_back({"OMP_NUM_THREADS", std::to_string(*plan.omp_threads)});
  return env;
}

std::string describe(const LaunchPlan& plan) {
  const ProcessEnv& first = plan.processes.front();
  const int nproc = first.local_world_size;
  std::string line = "worker " + std::to_string(first.worker_index) + " of " +
                     std::to_string(first.world_size / nproc) + " (" + plan.worker_origin + "), " +
                     std::to_string(nproc) + (nproc == 1 ? " process (" : " processes (") +
                     plan.nproc_origin + "), " + std::to_string(first.world_size) + " in all, " +
                     std::to_string(plan.gpus) + " GPUs visible, master " + first.master_addr +
                     ":" + std::to_string(first.master_port);
  if (plan.omp_threads) line += ", OMP_NUM_THREADS=" + std::to_string(*plan.omp_threads);
  return line;
}

}  // namespace tj::trainer
