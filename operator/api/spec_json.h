// The spec of a TrainingJob from JSON. What validate.h would refuse is read as the nearest value
// that is allowed, or as left out. Callers outside api/ use json.h.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "operator/api/types.h"

namespace tj {

JobSpec spec_from_json(const nlohmann::json& spec);

}  // namespace tj
