#include "operator/api/json.h"

#include <nlohmann/json.hpp>

#include "contract/launch_env.h"
#include "operator/api/validate.h"

namespace tj {
namespace {
using nlohmann::json;

const json kEmptyObject = json::object();
const json kEmptyArray = json::array();

/// A member of an object, or an empty one where it is absent, null or of another type.
const json& object_at(const json& parent, const char* key) {
  if (!parent.is_object()) return kEmptyObject;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object() ? *found : kEmptyObject;
}
const json& array_at(const json& parent, const char* key) {
  if (!parent.is_object()) return kEmptyArray;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_array() ? *found : kEmptyArray;
}
std::string string_at(const json& parent, const char* key) {
  if (!parent.is_object()) return {};
  const auto found = parent.find(key);
  return found != parent.end() && found->is_string() ? found->get<std::string>() : std::string{};
}
template <typename Number = int>
Number number_at(const json& parent, const char* key, Number fallback = 0) {
  if (!parent.is_object()) return fallback;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_number_integer() ? found->get<Number>() : fallback;
}
bool bool_at(const json& parent, const char* key) {
  if (!parent.is_object()) return false;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_boolean() && found->get<bool>();
}
std::optional<TimePoint> time_at(const json& parent, const char* key) {
  return parse_time(string_at(parent, key));
}
json time_or_null(const std::optional<TimePoint>& time) {
  return time ? json(format_time(*time)) : json(nullptr);
}

Condition condition_from_json(const json& object) {
  return {.type = string_at(object, "type"),
          .status = string_at(object, "status") == "True",
          .reason = string_at(object, "reason"),
          .message = string_at(object, "message"),
          .observed_generation = number_at<long long>(object, "observedGeneration"),
          .last_transition_time = time_at(object, "lastTransitionTime")};
}

json to_json(const Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.status ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {"observedGeneration", condition.observed_generation},
          {"lastTransitionTime", time_or_null(condition.last_transition_time)}};
}

std::optional<FirstFailure> first_failure_from_json(const json& status) {
  const json& object = object_at(status, "firstFailure");
  if (object.empty()) return std::nullopt;
  FirstFailure failure{.rank = number_at(object, "rank"),
                       .node = string_at(object, "node"),
                       .exit_code = {},
                       .reason = string_at(object, "reason"),
                       .message = string_at(object, "message"),
                       .finished_at = time_at(object, "finishedAt")};
  if (object.contains("exitCode")) failure.exit_code = number_at(object, "exitCode");
  return failure;
}

json to_json(const std::optional<FirstFailure>& failure) {
  if (!failure) return nullptr;
  return {{"rank", failure->rank},
          {"node", failure->node},
          {"exitCode", failure->exit_code ? json(*failure->exit_code) : json(nullptr)},
          {"reason", failure->reason},
          {"message", failure->message},
          {"finishedAt", time_or_null(failure->finished_at)}};
}

ReplicaStatus replicas_from_json(const json& status) {
  const json& worker = object_at(object_at(status, "replicaStatuses"), "Worker");
  return {.desired = number_at(worker, "desired"),
          .active = number_at(worker, "active"),
          .ready = number_at(worker, "ready"),
          .succeeded = number_at(worker, "succeeded"),
          .failed = number_at(worker, "failed")};
}

json to_json(const ReplicaStatus& workers) {
  return {{"desired", workers.desired},
          {"active", workers.active},
          {"ready", workers.ready},
          {"succeeded", workers.succeeded},
          {"failed", workers.failed}};
}

JobStatus status_from_json(const json& object) {
  JobStatus status{.phase = parse_phase(string_at(object, "phase")).value_or(Phase::pending),
                   .reason = string_at(object, "reason"),
                   .message = string_at(object, "message"),
                   .observed_generation = number_at<long long>(object, "observedGeneration"),
                   .attempt = number_at(object, "attempt"),
                   .ready_text = string_at(object, "ready"),
                   .selector = string_at(object, "selector"),
                   .start_time = time_at(object, "startTime"),
                   .completion_time = time_at(object, "completionTime"),
                   .workers = replicas_from_json(object),
                   .first_failure = first_failure_from_json(object)};
  for (const json& item : array_at(object, "conditions")) {
    status.conditions.push_back(condition_from_json(item));
  }
  return status;
}

JobSpec spec_from_json(const json& spec) {
  const json& worker = object_at(object_at(spec, "replicaSpecs"), "Worker");
  return {.worker_count = number_at(worker, "replicas", 1),
          .pod_template_json = object_at(worker, "template").dump()};
}

/// The label's number, or -1.
int label_number(const ObjectMeta& meta, const char* label) {
  const auto found = meta.labels.find(label);
  if (found == meta.labels.end()) return -1;
  const auto number = parse_int(label, found->second, 0, 1'000'000'000);
  return number ? *number : -1;
}

std::string label_text(const ObjectMeta& meta, const char* label) {
  const auto found = meta.labels.find(label);
  return found == meta.labels.end() ? std::string{} : found->second;
}

PodPhase pod_phase(const std::string& text) {
  if (text == "Running") return PodPhase::running;
  if (text == "Succeeded") return PodPhase::succeeded;
  if (text == "Failed") return PodPhase::failed;
  if (text == "Unknown") return PodPhase::unknown;
  return PodPhase::pending;
}

/// The status of the template's first container: kubelet sorts statuses by name, so it is looked up
/// by name.
const json& main_container_status(const json& object) {
  const json& containers = array_at(object_at(object, "spec"), "containers");
  const std::string name = containers.empty() ? std::string{} : string_at(containers[0], "name");
  for (const json& status : array_at(object_at(object, "status"), "containerStatuses")) {
    if (string_at(status, "name") == name) return status;
  }
  return kEmptyObject;
}

std::optional<ContainerExit> exit_of(const json& container_status) {
  const json& terminated = object_at(object_at(container_status, "state"), "terminated");
  if (terminated.empty()) return std::nullopt;
  return ContainerExit{.exit_code = number_at(terminated, "exitCode"),
                       .reason = string_at(terminated, "reason"),
                       .message = string_at(terminated, "message"),
                       .finished_at = time_at(terminated, "finishedAt")};
}

/// A failed init container ends the pod before its main container ever ran: its exit is the pod's.
std::optional<ContainerExit> failed_init_exit(const json& status) {
  for (const json& container : array_at(status, "initContainerStatuses")) {
    auto exit = exit_of(container);
    if (exit && exit->exit_code != 0) return exit;
  }
  return std::nullopt;
}

/// Why a pod does not start, from the first thing that says so: a waiting container, then the
/// scheduler.
void read_waiting(const json& status, Pod& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json& container : array_at(status, list)) {
      const json& waiting = object_at(object_at(container, "state"), "waiting");
      const std::string reason = string_at(waiting, "reason");
      if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
      pod.waiting_reason = reason;
      pod.waiting_message = string_at(waiting, "message");
      return;
    }
  }
  for (const json& condition : array_at(status, "conditions")) {
    const bool unscheduled =
        string_at(condition, "type") == "PodScheduled" && string_at(condition, "status") == "False";
    if (!unscheduled) continue;
    pod.waiting_reason = string_at(condition, "reason");
    pod.waiting_message = string_at(condition, "message");
  }
}

}  // namespace

ObjectMeta meta_from_json(const json& object) {
  const json& metadata = object_at(object, "metadata");
  ObjectMeta meta{.name = string_at(metadata, "name"),
                  .ns = string_at(metadata, "namespace"),
                  .uid = string_at(metadata, "uid"),
                  .resource_version = string_at(metadata, "resourceVersion"),
                  .generation = number_at<long long>(metadata, "generation"),
                  .labels = {},
                  .controller_uid = {},
                  .creation_time = time_at(metadata, "creationTimestamp"),
                  .deletion_time = time_at(metadata, "deletionTimestamp")};
  for (const auto& [key, value] : object_at(metadata, "labels").items()) {
    if (value.is_string()) meta.labels.emplace(key, value.get<std::string>());
  }
  for (const json& owner : array_at(metadata, "ownerReferences")) {
    if (bool_at(owner, "controller")) meta.controller_uid = string_at(owner, "uid");
  }
  return meta;
}

Result<TrainingJob> job_from_json(const json& object) {
  TrainingJob job{.meta = meta_from_json(object),
                  .spec = {},
                  .status = status_from_json(object_at(object, "status")),
                  .spec_error = {}};
  if (job.meta.name.empty()) {
    return Error{Code::invalid, "has no name; it must be a DNS label", "metadata.name", {}};
  }
  const json& spec = object_at(object, "spec");
  const auto errors = validate_spec(job.meta.name, spec);
  if (errors.empty()) job.spec = spec_from_json(spec);
  if (!errors.empty()) job.spec_error = describe(errors.front());
  return job;
}

json status_patch(const TrainingJob& job, const JobStatus& status) {
  json conditions = json::array();
  for (const Condition& condition : status.conditions) conditions.push_back(to_json(condition));
  return {{"metadata", {{"resourceVersion", job.meta.resource_version}}},
          {"status",
           {{"phase", to_string(status.phase)},
            {"reason", status.reason},
            {"message", status.message},
            {"observedGeneration", status.observed_generation},
            {"attempt", status.attempt},
            {"ready", status.ready_text},
            {"selector", status.selector},
            {"startTime", time_or_null(status.start_time)},
            {"completionTime", time_or_null(status.completion_time)},
            {"replicaStatuses", {{"Worker", to_json(status.workers)}}},
            {"firstFailure", to_json(status.first_failure)},
            {"conditions", conditions}}}};
}

Result<Pod> trim_pod(const json& object) {
  Pod pod{.meta = meta_from_json(object)};
  if (pod.meta.name.empty()) {
    return Error{Code::invalid, "a pod without a name", "metadata.name", {}};
  }
  const json& status = object_at(object, "status");
  pod.job_name = label_text(pod.meta, names::kLabelTrainingJob);
  pod.worker_index = label_number(pod.meta, names::kLabelWorkerIndex);
  pod.attempt = label_number(pod.meta, names::kLabelAttempt);
  pod.phase = pod_phase(string_at(status, "phase"));
  const json& main_status = main_container_status(object);
  pod.ready = bool_at(main_status, "ready");
  pod.node = string_at(object_at(object, "spec"), "nodeName");
  pod.reason = string_at(status, "reason");
  pod.message = string_at(status, "message");
  read_waiting(status, pod);
  pod.exit = exit_of(main_status);
  if (!pod.exit && pod.phase == PodPhase::failed) pod.exit = failed_init_exit(status);
  return pod;
}

Result<Service> trim_service(const json& object) {
  Service service{.meta = meta_from_json(object), .job_name = {}};
  if (service.meta.name.empty()) {
    return Error{Code::invalid, "a Service without a name", "metadata.name", {}};
  }
  service.job_name = label_text(service.meta, names::kLabelTrainingJob);
  return service;
}

}  // namespace tj
