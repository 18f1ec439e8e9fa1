// What shows jobs: `tj list`, `tj status`, `tj top`, `tj events`. Each returns what tj exits with.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "cli/jobs/job_text.h"
#include "cli/jobs/output.h"
#include "cli/jobs/place.h"

namespace tj {

/// How often a job that is followed is looked at, and how long a server may give no answer.
struct FollowPace {
  std::chrono::milliseconds every{1'000};
  std::chrono::seconds outage_max{600};
};

struct ListOptions {
  bool all_namespaces = false;
  std::string label_selector;
  bool watch = false;
  Output output;
  FollowPace pace{.every = std::chrono::milliseconds{2'000}};
};
int list(Place& place, const ListOptions& options);

struct StatusOptions {
  std::string job;  // as a person writes it
  bool watch = false;
  Output output;
  FollowPace pace;
};
/// With watch: ends with the job, and says how it ended.
int show_status(Place& place, const StatusOptions& options);

int show_top(Place& place, const std::string& job);
int show_events(Place& place, const std::string& job, const Output& output);

/// The job and its pods; of pods that may not be listed there are none.
Result<JobView> read_view(Place& place, const std::string& name);
/// An object of the API as a view without pods.
Result<JobView> view_of(const Place& place, const nlohmann::json& job);
/// A later try may have another answer.
bool may_pass(const Error& error);

}  // namespace tj
