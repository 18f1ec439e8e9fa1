// What changes jobs: suspend, resume, restart, scale, delete. Each returns what tj exits with, and
// says what it has done, in the words of kubectl.
#pragma once
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/output.h"
#include "cli/jobs/place.h"
#include "cli/jobs/show.h"
#include "operator/api/types.h"

namespace tj {

/// On the pods, by `tj restart`: what they are made from is another then, and an attempt begins.
inline constexpr const char* kAnnotationRestartedAt = "kubebrain.io/restarted-at";

int set_suspended(Place& place, const std::string& job, bool suspended, const Output& output);

/// A new attempt of the whole gang that counts as no failure and no restart. What pods are made
/// from may change in the update that suspends a job: so the first of two updates suspends it and
/// marks its template, the second resumes it. An operator that sees only the last of them finds
/// another template, and one that sees both a job that was suspended: both begin a new attempt.
int restart_job(Place& place, const std::string& job, const Output& output);
/// The first update: of the job as it was read, and of no other version.
nlohmann::json restart_patch(const TrainingJob& job, TimePoint now);

int scale_job(Place& place, const std::string& job, int worker_count, const Output& output);

struct DeleteOptions {
  std::vector<std::string> jobs;
  bool wait = true;  // until they and their pods are gone
  std::optional<std::chrono::seconds> timeout;
  Output output;
  FollowPace pace;
};
/// Of a local run: ends its tj run, which ends its workers; its folder stays.
int delete_jobs(Place& place, const DeleteOptions& options);

}  // namespace tj
