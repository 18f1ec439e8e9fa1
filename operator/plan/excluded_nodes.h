// When the nodes come back that are kept out of a job's attempts. Pure.
#pragma once
#include <optional>
#include <string>

#include "operator/plan/gang.h"

namespace tj {

/// Why the nodes that are excluded come back, if it is time: nodeLoss.excludeSeconds have passed
/// since the last was excluded, or the scheduler has no other for a worker.
std::optional<std::string> end_of_exclusion(const Observed& observed, const Gang& gang);

/// They are free again, and what was held against them is forgotten. Returns that in a sentence.
std::string readmit_nodes(JobStatus& status, const std::string& why);

}  // namespace tj
