// Fetches what `tj explain` looks at, from a cluster or from local runs.
#pragma once
#include <string>

#include "cli/cluster/session.h"
#include "cli/explain/evidence.h"

namespace tj {

/// What may not be read is left out, and named in `missing`: only the job itself is needed.
struct GatheredForJob {
  Gathered gathered;
  std::vector<std::string> missing;  // "nodes: ... is forbidden"
};
Result<GatheredForJob> gather(Session& session, const std::string& job);

}  // namespace tj
