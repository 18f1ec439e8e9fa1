// Conventions that name one process: what a launcher has set, and what a person says by flags.
#include <cstdint>
#include <string>
#include <utility>

#include "trainer/launch/conventions.h"

namespace tj::trainer {
namespace {

std::string with(const Fact<int>& fact) { return fact.origin + " " + std::to_string(fact.value); }

/// Each worker must run as many processes as the others.
bool divides(EnvReader& env, const Fact<int>& world, const Fact<int>& nproc) {
  if (world.value % nproc.value == 0) return true;
  env.refuse(world.origin, "is " + std::to_string(world.value) + " with " + with(nproc) +
                               "; it must be a multiple of it: each worker runs as many processes "
                               "as the others");
  return false;
}

/// Processes per worker where no launcher says so: RANK = NODE_RANK x nproc + LOCAL_RANK, and
/// someone knows one of the others.
Fact<int> derive_nproc(const IdentityRequest& request, EnvReader& env, const Fact<int>& world,
                       const Fact<int>& rank) {
  if (const auto told = env.nproc("NPROC_PER_NODE")) return *told;
  if (env.has("NNODES")) {
    const auto nodes = env.integer({.name = "NNODES", .what = "the number of nodes", .min = 1});
    if (!divides(env, world, nodes)) return {1, "NNODES"};
    return {world.value / nodes.value, "WORLD_SIZE / NNODES"};
  }
  const auto node = env.integer_or({.name = "NODE_RANK", .what = "the index of this node"}, {});
  const auto local = env.integer_or({.name = "LOCAL_RANK", .what = "an index from 0"}, {});
  const int before = rank.value - local.value;  // processes on the nodes before this one
  const bool is_whole = node.value > 0 && before > 0 && before % node.value == 0;
  if (is_whole) return {before / node.value, "(RANK - LOCAL_RANK) / NODE_RANK"};
  if (request.host.gpus > 0) return {request.host.gpus, "GPUs visible here"};
  env.refuse("LOCAL_WORLD_SIZE",
             "is not set; it must be the number of processes on this worker: neither "
             "NPROC_PER_NODE nor NNODES is set, and no GPU is visible");
  return {1, "LOCAL_WORLD_SIZE"};
}

/// LOCAL_WORLD_SIZE, or what a launcher that does not set it lets us find.
Fact<int> read_local_world(const IdentityRequest& request, EnvReader& env, const Fact<int>& world,
                           const Fact<int>& rank) {
  const IntVar local_world{.name = "LOCAL_WORLD_SIZE",
                           .what = "the number of processes on this worker (LOCAL_RANK is set)",
                           .min = 1};
  const bool may_derive = env.has("NODE_RANK") || request.options.convention.has_value();
  if (env.has(local_world.name) || !may_derive) return env.integer(local_world);
  return derive_nproc(request, env, world, rank);
}

/// RANK = NODE_RANK x nproc + LOCAL_RANK, wherever nobody moves ranks about.
void require_node(EnvReader& env, const Identity& id) {
  const int node =
      env.integer({.name = "NODE_RANK", .what = "the index of this node, from 0"}).value;
  const auto rank = std::int64_t{node} * id.nproc.value + id.local_rank->value;
  if (rank == id.rank->value) return;
  env.refuse("RANK", "is " + std::to_string(id.rank->value) + " with NODE_RANK " +
                         std::to_string(node) + ", LOCAL_RANK " +
                         std::to_string(id.local_rank->value) + " and " + with(id.nproc) +
                         "; it must be " + std::to_string(rank));
}

}  // namespace

Identity follow_processes(const IdentityRequest& request, EnvReader& env, Identity id) {
  const auto world =
      env.integer({.name = "WORLD_SIZE", .what = "the number of processes of the job", .min = 1});
  id.rank = env.integer({.name = "RANK", .what = "the index of this process in the job, from 0"});
  env.require_below(*id.rank, {.name = "WORLD_SIZE", .value = world.value});
  id.nproc = read_local_world(request, env, world, *id.rank);
  const IntVar local_rank{
      .name = "LOCAL_RANK",
      .what = "the index of this process on its worker, from 0 (LOCAL_WORLD_SIZE is set)"};
  const bool must_say = env.has("LOCAL_WORLD_SIZE");
  id.local_rank = must_say
                      ? env.integer(local_rank)
                      : env.integer_or(local_rank, {id.rank->value % id.nproc.value,
                                                    "computed: RANK modulo " + with(id.nproc)});
  env.require_below(*id.local_rank, {.name = id.nproc.origin, .value = id.nproc.value});
  if (!divides(env, world, id.nproc)) return id;
  id.worker_count = {world.value / id.nproc.value, "computed: WORLD_SIZE / " + with(id.nproc)};
  id.worker_index = {id.rank->value / id.nproc.value, "computed: RANK / " + with(id.nproc)};
  if (env.has("GROUP_RANK")) {
    id.worker_index = env.integer({.name = "GROUP_RANK", .what = "the index of this worker"});
    env.require_below(id.worker_index,
                      {.name = "WORLD_SIZE / LOCAL_WORLD_SIZE", .value = id.worker_count.value});
  } else if (env.has("NODE_RANK")) {
    require_node(env, id);
  }
  const auto master = default_master(request, id);
  id.master_addr = read_master_addr(env, "", master);
  id.master_port = read_master_port(env, "", master);
  return id;
}

namespace {

Fact<int> nproc_of_flags(const IdentityRequest& request, EnvReader& env) {
  const PlaceFlags& place = request.options.place;
  const NprocChoice& choice = request.options.nproc;
  const bool is_fixed = choice.source == NprocChoice::Source::fixed;
  if (!place.gpus_per_node) return choose_nproc(request, env, std::nullopt);
  if (is_fixed && choice.count != *place.gpus_per_node) {
    env.refuse("--nproc", "is " + std::to_string(choice.count) + " with --gpus-per-node " +
                              std::to_string(*place.gpus_per_node) +
                              "; both say the same thing and must be equal");
  }
  return choose_nproc(request, env, Fact<int>{*place.gpus_per_node, "--gpus-per-node"});
}

Fact<int> node_of_flags(const PlaceFlags& place, EnvReader& env, const Identity& id) {
  if (place.node_rank) return {*place.node_rank, "--node-rank"};
  if (place.rank) {
    return {*place.rank / id.nproc.value, "computed: --rank / " + std::to_string(id.nproc.value)};
  }
  if (id.worker_count.value > 1) {
    env.refuse("--node-rank", "is not given; with --world-size " + std::to_string(id.world_size()) +
                                  " and " + std::to_string(id.nproc.value) +
                                  " processes per node it must say which of the " +
                                  std::to_string(id.worker_count.value) + " nodes this is");
  }
  return {0, "computed: there is one node"};
}

/// The one process that --rank or --local-rank mean; the launcher starts no other.
Identity with_process(const PlaceFlags& place, EnvReader& env, Identity id) {
  const int nproc = id.nproc.value;
  const int first = id.worker_index.value * nproc;
  id.local_rank = place.local_rank ? Fact<int>{*place.local_rank, "--local-rank"}
                                   : Fact<int>{*place.rank % nproc,
                                               "computed: --rank modulo " + std::to_string(nproc)};
  id.rank = place.rank ? Fact<int>{*place.rank, "--rank"}
                       : Fact<int>{first + *place.local_rank, "computed: node and --local-rank"};
  env.require_below(*id.local_rank, {.name = id.nproc.origin, .value = nproc});
  if (id.rank->value != first + id.local_rank->value) {
    env.refuse("--rank", "is " + std::to_string(id.rank->value) + " on node " +
                             std::to_string(id.worker_index.value) + " with local rank " +
                             std::to_string(id.local_rank->value) + " of " + std::to_string(nproc) +
                             "; it must be " + std::to_string(first + id.local_rank->value));
  }
  return id;
}

}  // namespace

Identity follow_flags(const IdentityRequest& request, EnvReader& env, Identity id) {
  const PlaceFlags& place = request.options.place;
  if (!place.world_size) {
    env.refuse("--world-size",
               "is not given; it must be the number of processes of the job, as the other flags "
               "say who this is among them");
    return id;
  }
  const Fact<int> world{*place.world_size, "--world-size"};
  id.nproc = nproc_of_flags(request, env);
  if (!divides(env, world, id.nproc)) return id;
  id.worker_count = {world.value / id.nproc.value,
                     "computed: --world-size / " + std::to_string(id.nproc.value)};
  if (place.rank) {
    env.require_below({*place.rank, "--rank"}, {.name = "--world-size", .value = world.value});
  }
  id.worker_index = node_of_flags(place, env, id);
  env.require_below(id.worker_index, {.name = "nodes", .value = id.worker_count.value});
  if (place.rank || place.local_rank) id = with_process(place, env, std::move(id));
  const auto master = default_master(request, id);
  id.master_addr = place.master_addr ? Fact<std::string>{*place.master_addr, "--master-addr"}
                                     : read_master_addr(env, "", master);
  id.master_port = place.master_port ? Fact<int>{*place.master_port, "--master-port"}
                                     : read_master_port(env, "", master);
  return id;
}

}  // namespace tj::trainer
