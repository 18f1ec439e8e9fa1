#include "tests/sim/mirror.h"

#include <cstdlib>

#include "contract/names.h"

namespace tj::sim {
namespace {

using Json = nlohmann::json;
using object_rules::part;
using object_rules::text_at;

int number_in(const Json& object, const char* field, int absent) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : absent;
}

int number_of(const std::string& text) { return text.empty() ? -1 : std::atoi(text.c_str()); }

void read_container(const Json& container, PodFacts& pod) {
  pod.made_from = text_at(container, "image");
  const auto variables = container.find("env");
  if (variables == container.end() || !variables->is_array()) return;
  for (const Json& variable : *variables) {
    const std::string name = text_at(variable, "name");
    const std::string value = text_at(variable, "value");
    if (name == "WORLD_SIZE") pod.world_size = number_of(value);
    if (name == "RANK") pod.env_rank = number_of(value);
    if (name == names::kEnvAttempt) pod.env_attempt = number_of(value);
    if (name == names::kEnvJobUid) pod.env_job_uid = value;
    if (name == "MASTER_PORT") pod.made_from += " port " + value;
  }
}

std::string controller_of(const Json& meta) {
  const auto owners = meta.find("ownerReferences");
  if (owners == meta.end() || owners->empty()) return "";
  return text_at(owners->front(), "uid");
}

}  // namespace

bool is_terminal(const JobFacts& job) { return job.phase == "Succeeded" || job.phase == "Failed"; }

PodFacts read_pod(const Json& object) {
  const Json& meta = part(object, "metadata");
  const Json& spec = part(object, "spec");
  const Json& labels = part(meta, "labels");
  const Json& status = part(object, "status");
  PodFacts pod{.key = key_of(object),
               .uid = text_at(meta, "uid"),
               .job_uid = controller_of(meta),
               .rank = number_of(text_at(labels, names::kLabelWorkerIndex)),
               .attempt = number_of(text_at(labels, names::kLabelAttempt)),
               .node = text_at(spec, "nodeName"),
               .phase = text_at(status, "phase"),
               .is_marked = meta.contains("deletionTimestamp")};
  read_container(spec.at("containers").front(), pod);
  pod.is_done = pod.phase == "Succeeded" || pod.phase == "Failed";
  const auto containers = status.find("containerStatuses");
  if (containers != status.end() && !containers->empty())
    pod.has_exit = part(containers->front(), "state").contains("terminated");
  return pod;
}

JobFacts read_job(const Json& object) {
  const Json& meta = part(object, "metadata");
  const Json& status = part(object, "status");
  const Json& spec = part(object, "spec");
  const Json& workers = part(part(status, "replicaStatuses"), "Worker");
  const Json& policy = part(spec, "runPolicy");
  JobFacts job{.key = key_of(object),
               .uid = text_at(meta, "uid"),
               .is_marked = meta.contains("deletionTimestamp"),
               .generation = number_in(meta, "generation", 0),
               .phase = text_at(status, "phase"),
               .reason = text_at(status, "reason"),
               .message = text_at(status, "message"),
               .completion_time = text_at(status, "completionTime"),
               .observed_generation = number_in(status, "observedGeneration", 0),
               .attempt = number_in(status, "attempt", 0),
               .restarts = number_in(status, "restarts", 0),
               .restarts_counted = number_in(status, "restartsCounted", 0),
               .restart_step = number_in(status, "restartStep", 0),
               .reached_step = number_in(part(status, "progress"), "step", -1),
               .progress_attempt = number_in(part(status, "progress"), "attempt", -1),
               .world_size = number_in(status, "worldSize", 0),
               .active = number_in(workers, "active", 0),
               .ready = number_in(workers, "ready", 0),
               .succeeded = number_in(workers, "succeeded", 0)};
  if (status.contains("firstFailure")) job.first_failure = status["firstFailure"].dump();
  job.replicas = number_in(part(part(spec, "replicaSpecs"), "Worker"), "replicas", 1);
  job.is_suspended = policy.value("suspend", false);
  job.max_restarts = number_in(policy, "maxRestarts", 3);
  job.has_ttl = policy.contains("ttlSecondsAfterFinished");
  job.may_reset_budget = policy.contains("restartBudgetResetSeconds");
  job.resets_on_progress = policy.value("restartBudgetResetOnProgress", true);
  job.looks_for_hangs = policy.contains("heartbeatTimeoutSeconds");
  if (status.contains("lastCheckpoint")) {
    job.reached_step = number_in(status["lastCheckpoint"], "step", -1);
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
    const auto conditions = part(*change.object, "status").find("conditions");
    const bool is_reported = conditions != part(*change.object, "status").end();
    const bool is_silent = is_reported && text_at(conditions->front(), "status") == "Unknown";
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
