// What the commands ask an API server about jobs, and what they say when it refuses.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/session.h"

namespace tj {

/// The name in `mnist`, `trainingjob/mnist`, `tj/mnist`; invalid: it can be no job's.
Result<std::string> job_name_of(const std::string& argument);

/// not_found says which names are near.
Result<nlohmann::json> get_job(Session& session, const std::string& name);
struct JobSelection {
  bool all_namespaces = false;
  std::string label_selector;
};
/// In order of namespace and name.
Result<std::vector<nlohmann::json>> list_jobs(Session& session, const JobSelection& selection);
/// Those that the job owns, in order of rank.
Result<std::vector<nlohmann::json>> pods_of(Session& session, const nlohmann::json& job);
/// About the job and its objects, the oldest first.
Result<std::vector<nlohmann::json>> events_of(Session& session, const nlohmann::json& job);
/// A merge patch; the job as it is then.
Result<nlohmann::json> patch_job(Session& session, const std::string& name,
                                 const nlohmann::json& patch);
/// The job that has this uid, and what it owns.
Result<void> delete_job(Session& session, const nlohmann::json& job);

/// At most three of `names` that `wanted` may have meant, the nearest first.
std::vector<std::string> near_names(const std::string& wanted,
                                    const std::vector<std::string>& names);
/// "; did you mean a, or b?" of those; "" where none is near.
std::string did_you_mean(const std::string& wanted, const std::vector<std::string>& names);
/// The error with what it means for a person: which right is missing, that the cluster has no
/// TrainingJobs, that it can't be reached.
Error explained(const Error& error, const Request& request);

}  // namespace tj
