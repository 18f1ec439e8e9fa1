// The conditions of a job, as `kubectl wait` reads them. Pure.
#pragma once
#include "operator/api/types.h"

namespace tj {

/// Makes them say what phase, reason and message of `status` say. A condition that flips has done
/// so `now`.
void set_conditions(JobStatus& status, TimePoint now);

}  // namespace tj
