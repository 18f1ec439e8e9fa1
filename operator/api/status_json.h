// The status of a TrainingJob from and to JSON. Callers outside api/ use json.h.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "operator/api/types.h"

namespace tj {

JobStatus status_from_json(const nlohmann::json& object);
nlohmann::json to_json(const JobStatus& status);  // absent optionals are null

}  // namespace tj
