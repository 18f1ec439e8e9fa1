// Which process of its job the caller is, or one that a worker starts.
#pragma once
#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/launch/identity.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// Who the calling process is, by the rules of identify(). Fails with Code::invalid.
Result<ProcessEnv> process_env_from(const EnvLookup& lookup, const WorkerHost& host);

/// One process of the worker; `local_rank` is below its number of processes.
ProcessEnv process_of(const Identity& identity, int local_rank);

}  // namespace tj::trainer
