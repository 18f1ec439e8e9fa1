// The calls by which a job and the ConfigMap of its script come to be. The job is first, so that
// the ConfigMap has its owner from the beginning: whatever happens in between, nothing is left that
// nobody owns, and the kubelet starts no container whose ConfigMap is not there yet. What fails in
// between takes the job away again, or says that it could not.
#pragma once
#include <nlohmann/json.hpp>

#include "cli/cluster/session.h"
#include "cli/submit/made_job.h"
#include "operator/api/types.h"

namespace tj::submit {

struct CreateOptions {
  bool replaces = false;  // a job of that name is deleted first
};

/// The job as the server has it. The job's own namespace, else the session's.
Result<nlohmann::json> create(Session& session, const MadeJob& made, const CreateOptions& options);

/// "Background": the job is gone at once, what it owns soon after. Only the one of that uid.
Result<void> remove_job(Session& session, const ObjectKey& key, const std::string& uid);

}  // namespace tj::submit
