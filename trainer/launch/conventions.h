// How each convention names a worker or a process. Every function fills in what its variables say;
// what contradicts is refused through the reader. Called by identify() alone.
#pragma once
#include <optional>
#include <string_view>

#include "trainer/launch/env_reader.h"
#include "trainer/launch/identity.h"

namespace tj::trainer {

Identity follow_workers(const IdentityRequest& request, EnvReader& env, Identity identity);
Identity follow_nodes(const IdentityRequest& request, EnvReader& env, Identity identity);
Identity follow_processes(const IdentityRequest& request, EnvReader& env, Identity identity);
Identity follow_flags(const IdentityRequest& request, EnvReader& env, Identity identity);
Identity follow_slurm(const IdentityRequest& request, EnvReader& env, Identity identity);
Identity follow_nothing(const IdentityRequest& request, EnvReader& env, Identity identity);

/// Processes on this worker: --nproc, what the environment has told, or the GPUs.
Fact<int> choose_nproc(const IdentityRequest& request, EnvReader& env,
                       const std::optional<Fact<int>>& told);

/// WORLD_SIZE and RANK beside a count of workers: some platforms repeat the workers in them, others
/// count processes (kubeflow/trainer#1840). Anything else is refused. Returns the number of
/// processes on each worker: `told`, or what follows from WORLD_SIZE.
std::optional<Fact<int>> reconcile_world(EnvReader& env, const Identity& identity,
                                         std::optional<Fact<int>> told);

/// Where rank 0 is met when no variable says so; no address: it must be said.
struct MasterDefault {
  std::optional<Fact<std::string>> addr;
  Fact<int> port;
};
/// For a worker without others a place of its own; for all others the port that torchrun takes too.
MasterDefault default_master(const IdentityRequest& request, const Identity& identity);
/// From <prefix>MASTER_*, from MASTER_*, or `otherwise`.
Fact<std::string> read_master_addr(EnvReader& env, std::string_view prefix,
                                   const MasterDefault& otherwise);
Fact<int> read_master_port(EnvReader& env, std::string_view prefix, const MasterDefault& otherwise);

}  // namespace tj::trainer
