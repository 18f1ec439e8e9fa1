#include "tests/sim/mirror.h"

#include <cstdlib>
#include <sstream>

#include "contract/names.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj::sim {
namespace {

using Json = nlohmann::json;
using namespace read;

int number_of(const std::string& text) { return text.empty() ? -1 : std::atoi(text.c_str()); }

/// "0,2-5".
std::set<int> ranks_in(const std::string& text) {
  std::set<int> ranks;
  std::istringstream in(text);
  for (std::string range; std::getline(in, range, ',');) {
    const auto dash = range.find('-');
    const int last = number_of(dash == std::string::npos ? range : range.substr(dash + 1));
    for (int rank = number_of(range.substr(0, dash)); rank <= last; ++rank) ranks.insert(rank);
  }
  return ranks;
}

void read_container(const Json& container, PodFacts& pod) {
  pod.made_from = string_at(container, "image");
  for (const Json& variable : array_at(container, "env")) {
    const std::string name = string_at(variable, "name");
    const std::string value = string_at(variable, "value");
    if (name == "WORLD_SIZE") pod.world_size = number_of(value);
    if (name == "RANK") pod.env_rank = number_of(value);
    if (name == names::kEnvAttempt) pod.env_attempt = number_of(value);
    if (name == names::kEnvJobUid) pod.env_job_uid = value;
    if (name == "MASTER_PORT") pod.made_from += " port " + value;
  }
}

void read_state(const Json& state, PodFacts& pod) {
  pod.has_exit = state.contains("terminated");
  pod.started_at = string_at(object_at(state, "running"), "startedAt");
}

std::string controller_of(const Json& meta) {
  const Json& owners = array_at(meta, "ownerReferences");
  return owners.empty() ? "" : string_at(owners.front(), "uid");
}

}  // namespace

bool is_terminal(const JobFacts& job) { return job.phase == "Succeeded" || job.phase == "Failed"; }

PodFacts read_pod(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  const Json& spec = object_at(object, "spec");
  const Json& labels = object_at(meta, "labels");
  const Json& status = object_at(object, "status");
  PodFacts pod{.key = key_of(object),
               .uid = string_at(meta, "uid"),
               .job_uid = controller_of(meta),
               .rank = number_of(string_at(labels, names::kLabelWorkerIndex)),
               .attempt = number_of(string_at(labels, names::kLabelAttempt)),
               .node = string_at(spec, "nodeName"),
               .phase = string_at(status, "phase"),
               .is_marked = meta.contains("deletionTimestamp")};
  read_container(main_container(object), pod);
  pod.is_done = pod.phase == "Succeeded" || pod.phase == "Failed";
  const auto containers = status.find("containerStatuses");
  if (containers != status.end() && !containers->empty())
    read_state(object_at(containers->front(), "state"), pod);
  return pod;
}

JobFacts read_job(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  const Json& status = object_at(object, "status");
  const Json& spec = object_at(object, "spec");
  const Json& workers = object_at(object_at(status, "replicaStatuses"), "Worker");
  const Json& policy = object_at(spec, "runPolicy");
  JobFacts job{.key = key_of(object),
               .uid = string_at(meta, "uid"),
               .is_marked = meta.contains("deletionTimestamp"),
               .generation = number_at(meta, "generation", 0),
               .phase = string_at(status, "phase"),
               .reason = string_at(status, "reason"),
               .message = string_at(status, "message"),
               .completion_time = string_at(status, "completionTime"),
               .observed_generation = number_at(status, "observedGeneration", 0),
               .attempt = number_at(status, "attempt", 0),
               .restarts = number_at(status, "restarts", 0),
               .restarts_counted = number_at(status, "restartsCounted", 0),
               .restarts_uncounted = number_at(status, "restartsUncounted", 0),
               .succeeded_ranks = ranks_in(string_at(status, "succeededRanks")),
               .failed_rank = number_at(object_at(status, "firstFailure"), "rank", -1),
               .restart_step = number_at(status, "restartStep", 0),
               .reached_step = number_at(object_at(status, "progress"), "step", -1),
               .progress_attempt = number_at(object_at(status, "progress"), "attempt", -1),
               .world_size = number_at(status, "worldSize", 0),
               .active = number_at(workers, "active", 0),
               .ready = number_at(workers, "ready", 0),
               .succeeded = number_at(workers, "succeeded", 0)};
  if (status.contains("firstFailure")) job.first_failure = status["firstFailure"].dump();
  job.replicas = number_at(object_at(object_at(spec, "replicaSpecs"), "Worker"), "replicas", 1);
  job.is_suspended = bool_at(policy, "suspend");
  job.max_restarts = number_at(policy, "maxRestarts", 3);
  job.has_ttl = policy.contains("ttlSecondsAfterFinished");
  job.may_reset_budget = policy.contains("restartBudgetResetSeconds");
  job.resets_on_progress = bool_at(policy, "restartBudgetResetOnProgress", true);
  job.looks_for_hangs = policy.contains("heartbeatTimeoutSeconds");
  if (status.contains("lastCheckpoint")) {
    job.reached_step = number_at(status["lastCheckpoint"], "step", -1);
  }
  job.clean_pods = policy.value("cleanPodPolicy", "Running");
  return job;
}

void Mirror::apply(const ObjectChange& change) {
  const bool is_deletion = change.type == ChangeType::deleted;
  if (change.resource == Resource::pods) {
    PodFacts pod = read_pod(*change.object);
    if (is_deletion)
      pods_.erase(pod.uid);
    else
      pods_.insert_or_assign(pod.uid, pod);
  }
  if (change.resource == Resource::nodes) {
    const std::string name = key_of(*change.object).name;
    const auto conditions = object_at(*change.object, "status").find("conditions");
    const bool is_reported = conditions != object_at(*change.object, "status").end();
    const bool is_silent = is_reported && string_at(conditions->front(), "status") == "Unknown";
    if (is_silent)
      silent_nodes_.insert(name);
    else
      silent_nodes_.erase(name);
  }
  if (change.resource == Resource::training_jobs) {
    JobFacts job = read_job(*change.object);
    job.is_gone = is_deletion;
    jobs_.insert_or_assign(job.uid, job);
  }
}

const PodFacts* Mirror::pod(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const JobFacts* Mirror::job(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

const JobFacts* Mirror::job(const ObjectKey& key) const {
  for (const auto& [uid, job] : jobs_) {
    if (!job.is_gone && job.key == key) return &job;
  }
  return nullptr;
}

}  // namespace tj::sim
