// From a job and a rank to a pod and its container: what exec, port-forward and cp have in common.
#pragma once
#include <string>

#include "cli/cluster/session.h"
#include "contract/result.h"

namespace CLI {
class App;
}

namespace tj {

/// --rank, and -c/--container; what they set must outlive the options.
void add_rank_flag(CLI::App& command, int& rank);
void add_container_flag(CLI::App& command, std::string& container);

struct WorkerPlace {
  std::string ns;
  std::string pod;
  std::string container;
};

/// The pod of a worker, and the container that trains (or the one that is named). Where there is
/// none, the error says whether it is the job or the worker that is missing, and what there is.
Result<WorkerPlace> find_worker(Session& session, const std::string& job, int rank,
                                const std::string& container);

}  // namespace tj
