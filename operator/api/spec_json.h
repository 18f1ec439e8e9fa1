// The spec of a TrainingJob from JSON that validate.h has passed. Callers outside api/ use json.h.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "operator/api/types.h"

namespace tj {

JobSpec spec_from_json(const nlohmann::json& spec);

}  // namespace tj
