// Conventions that count workers (nodes, pods): what this launcher makes of one is its own affair.
#include <cstdint>
#include <string>
#include <utility>

#include "contract/names.h"
#include "trainer/launch/conventions.h"

namespace tj::trainer {
namespace {

constexpr int kPortMax = 65535;

/// The number of processes that WORLD_SIZE leaves for each worker.
std::optional<Fact<int>> reconcile_size(EnvReader& env, const Fact<int>& workers,
                                        std::optional<Fact<int>> told) {
  const int count = workers.value;
  const int world =
      env.integer({.name = "WORLD_SIZE", .what = "the number of processes", .min = 1}).value;
  if (world == count) return told;
  const std::string is =
      "is " + std::to_string(world) + " with " + workers.origin + " " + std::to_string(count);
  if (!told && world % count == 0)
    return Fact<int>{world / count, "computed: WORLD_SIZE / " + workers.origin};
  if (!told) {
    env.refuse("WORLD_SIZE", is + "; it must be the same or a multiple of it");
    return told;
  }
  const auto processes = std::int64_t{count} * told->value;
  if (world != processes) {
    env.refuse("WORLD_SIZE", is + " and " + told->origin + " " + std::to_string(told->value) +
                                 "; it must be " + std::to_string(count) + " (workers) or " +
                                 std::to_string(processes) + " (processes)");
  }
  return told;
}

/// The prefixed name, or the plain one where only that may be set.
std::string set_name(const EnvReader& env, std::string_view prefix, const char* name) {
  const std::string prefixed = std::string(prefix) + name;
  return env.has(prefixed) ? prefixed : name;
}

/// A number that came with the environment; --nproc may ask for what looks wrong here.
void require_possible(const IdentityRequest& request, EnvReader& env, const Fact<int>& nproc) {
  if (nproc.value > kNprocMax) {
    env.refuse(nproc.origin, "is " + std::to_string(nproc.value) +
                                 "; it must be a number of processes from 1 to " +
                                 std::to_string(kNprocMax));
  }
  const PlaceFlags& place = request.options.place;
  const bool starts_all = !place.rank && !place.local_rank;
  const int gpus = request.host.gpus;
  if (starts_all && gpus > 0 && nproc.value > gpus) {
    env.refuse(nproc.origin, "is " + std::to_string(nproc.value) + " with " + std::to_string(gpus) +
                                 " GPUs visible here; it must be at most that, or --nproc be given "
                                 "for processes that share GPUs");
  }
}

}  // namespace

std::optional<Fact<int>> reconcile_world(EnvReader& env, const Identity& id,
                                         std::optional<Fact<int>> told) {
  if (env.has("WORLD_SIZE")) told = reconcile_size(env, id.worker_count, std::move(told));
  if (!env.has("RANK")) return told;
  const int rank = env.integer({.name = "RANK", .what = "an index from 0"}).value;
  const int index = id.worker_index.value;
  const auto first = std::int64_t{index} * (told ? told->value : 1);
  if (rank != index && rank != first) {
    env.refuse("RANK", "is " + std::to_string(rank) + " with " + id.worker_index.origin + " " +
                           std::to_string(index) + "; it must be " + std::to_string(index) +
                           " (workers)" +
                           (told ? " or " + std::to_string(first) + " (processes)" : ""));
  }
  return told;
}

Fact<int> choose_nproc(const IdentityRequest& request, EnvReader& env,
                       const std::optional<Fact<int>>& told) {
  using enum NprocChoice::Source;
  const NprocChoice& choice = request.options.nproc;
  const int gpus = request.host.gpus;
  if (request.is_process) return {1, "trainer train: one process for each worker"};
  if (choice.source == fixed) return {choice.count, "--nproc"};
  if (choice.source == count_devices || !told) {
    return gpus > 0 ? Fact<int>{gpus, "GPUs"} : Fact<int>{1, "no GPU"};
  }
  require_possible(request, env, *told);
  return *told;
}

MasterDefault default_master(const IdentityRequest& request, const Identity& id) {
  const bool is_alone = id.worker_count.value == 1;
  MasterDefault master{.addr = {}, .port = {names::kMasterPortDefault, "default"}};
  if (is_alone) master.addr = Fact<std::string>{"127.0.0.1", "no other worker"};
  // Nobody but this launcher's own processes will look for it.
  if (is_alone && !id.rank && request.host.free_port > 0)
    master.port = {request.host.free_port, "a free port"};
  return master;
}

Fact<std::string> read_master_addr(EnvReader& env, std::string_view prefix,
                                   const MasterDefault& otherwise) {
  const std::string name = set_name(env, prefix, "MASTER_ADDR");
  if (!env.has(name) && otherwise.addr) return *otherwise.addr;
  return env.text(name, "the host name or address of rank 0");
}

Fact<int> read_master_port(EnvReader& env, std::string_view prefix,
                           const MasterDefault& otherwise) {
  const std::string name = set_name(env, prefix, "MASTER_PORT");
  return env.integer_or(
      {.name = name, .what = "a TCP port of rank 0's host", .min = 1, .max = kPortMax},
      otherwise.port);
}

Identity follow_workers(const IdentityRequest& request, EnvReader& env, Identity id) {
  const auto launch = from_env(request.lookup);
  if (!launch) {
    env.refuse(launch.error());
    return id;
  }
  id.worker_count = {launch->world_size, "WORLD_SIZE"};
  id.worker_index = {launch->rank, "RANK"};
  id.master_addr = {launch->master_addr, "MASTER_ADDR"};
  id.master_port = {launch->master_port, "MASTER_PORT"};
  std::optional<Fact<int>> told;
  if (launch->nproc_per_node) told = {*launch->nproc_per_node, "NPROC_PER_NODE"};
  id.nproc = choose_nproc(request, env, told);
  for (const char* name : {"NNODES", "PET_NNODES"}) env.require_same(name, id.worker_count);
  for (const char* name : {"NODE_RANK", "PET_NODE_RANK"}) env.require_same(name, id.worker_index);
  env.require_same("PET_MASTER_ADDR", id.master_addr);
  env.require_same("PET_MASTER_PORT", id.master_port);
  if (told) env.require_same("PET_NPROC_PER_NODE", *told);
  return id;
}

Identity follow_nodes(const IdentityRequest& request, EnvReader& env, Identity id) {
  const std::string prefix = id.convention == Convention::pet ? "PET_" : "";
  const std::string count = prefix + "NNODES";
  const std::string index = prefix + "NODE_RANK";
  const IntVar index_var{.name = index, .what = "the index of this node, from 0"};
  const auto range = request.lookup(count).value_or("");
  if (range.find(':') != std::string::npos) {
    env.refuse(count, "is \"" + range +
                          "\"; it must be one number: a job does not grow or shrink while it runs");
  }
  id.worker_count = env.integer({.name = count, .what = "the number of nodes", .min = 1});
  id.worker_index = id.worker_count.value == 1
                        ? env.integer_or(index_var, {0, "computed: there is one node"})
                        : env.integer(index_var);
  env.require_below(id.worker_index, {.name = count, .value = id.worker_count.value});
  const auto told = reconcile_world(env, id, env.nproc(prefix + "NPROC_PER_NODE"));
  id.nproc = choose_nproc(request, env, told);
  const auto master = default_master(request, id);
  id.master_addr = read_master_addr(env, prefix, master);
  id.master_port = read_master_port(env, prefix, master);
  return id;
}

Identity follow_nothing(const IdentityRequest& request, EnvReader& env, Identity id) {
  id.worker_count = {1, "default"};
  id.worker_index = {0, "default"};
  id.nproc = choose_nproc(request, env, env.nproc("NPROC_PER_NODE"));
  const auto master = default_master(request, id);
  id.master_addr = *master.addr;
  id.master_port = master.port;
  return id;
}

}  // namespace tj::trainer
