#include "trainer/launch/process_identity.h"

namespace tj::trainer {

Result<ProcessEnv> process_env_from(const EnvLookup& lookup, const WorkerHost& host) {
  const auto id = identify({.lookup = lookup, .host = host, .is_process = true});
  if (!id) return id.error();
  return process_of(*id, id->local_rank ? id->local_rank->value : 0);
}

ProcessEnv process_of(const Identity& id, int local_rank) {
  return {.world_size = id.world_size(),
          .rank = id.rank ? id.rank->value : id.worker_index.value * id.nproc.value + local_rank,
          .local_rank = local_rank,
          .local_world_size = id.nproc.value,
          .worker_index = id.worker_index.value,
          .master_addr = id.master_addr.value,
          .master_port = id.master_port.value,
          .job_uid = id.job_uid.value,
          .attempt = id.attempt.value,
          .node_name = id.node_name.value,
          .origin = std::string(source_of(id.convention)),
          .is_on_platform = id.is_on_platform};
}

}  // namespace tj::trainer
