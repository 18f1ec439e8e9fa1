// JSON of the resource and of the trimmed child objects. Strict where a person wrote it, lenient
// where a server did.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "contract/result.h"
#include "operator/api/types.h"

namespace tj {

/// Reads a TrainingJob. Unknown fields in the spec are an error only in `validate_manifest`
/// (api/validate.h); what else is wrong with a spec is kept in `spec_error`, so that its job can be
/// failed with a reason, or go on with the nearest that is allowed. Fails with Code::invalid only
/// when the object has no name.
Result<TrainingJob> job_from_json(const nlohmann::json& object);

/// The body of a merge patch on the status subresource: absent optionals are null, which deletes
/// them.
nlohmann::json status_patch(const TrainingJob& job, const JobStatus& status);

Result<Pod> trim_pod(const nlohmann::json& object);
Result<Node> trim_node(const nlohmann::json& object);
Result<Service> trim_service(const nlohmann::json& object);
ObjectMeta meta_from_json(const nlohmann::json& object);

}  // namespace tj
