#include "operator/api/json.h"

#include <nlohmann/json.hpp>

#include "contract/launch_env.h"
#include "operator/api/pod_json.h"
#include "operator/api/policy_fields.h"
#include "operator/api/read.h"
#include "operator/api/spec_json.h"
#include "operator/api/status_json.h"
#include "operator/api/validate.h"

namespace tj {
namespace {
using namespace read;

std::string label_of(const json& object, const char* label) {
  return string_at(object_at(object_at(object, "metadata"), "labels"), label);
}

std::string annotation_of(const json& object, const char* annotation) {
  return string_at(object_at(object_at(object, "metadata"), "annotations"), annotation);
}

std::optional<AttemptRecord> first_attempt_of(const json& service) {
  const auto world_size =
      parse_int(names::kAnnotationWorldSize, annotation_of(service, names::kAnnotationWorldSize),
                static_cast<int>(field::kWorkers.min), static_cast<int>(field::kWorkers.max));
  std::string hash = annotation_of(service, names::kAnnotationTemplateHash);
  if (!world_size || hash.empty()) return std::nullopt;
  return AttemptRecord{*world_size, std::move(hash)};
}

/// The label's number, or -1.
int label_number(const json& object, const char* label) {
  const auto number = parse_int(label, label_of(object, label), 0, 1'000'000'000);
  return number ? *number : -1;
}

/// What the operator told the pod when it made it (contract/launch_env.h): anybody may change its
/// labels later, nobody its environment. Of a pod that was told nothing, which is not ours, the
/// label must do.
int told_number(const json& pod, const char* variable, const char* label) {
  for (const json& each : array_at(main_container(pod), "env")) {
    if (string_at(each, "name") != variable) continue;
    const auto number = parse_int(variable, string_at(each, "value"), 0, 1'000'000'000);
    return number ? *number : -1;
  }
  return label_number(pod, label);
}

PodPhase pod_phase(const std::string& text) {
  if (text == "Running") return PodPhase::running;
  if (text == "Succeeded") return PodPhase::succeeded;
  if (text == "Failed") return PodPhase::failed;
  if (text == "Unknown") return PodPhase::unknown;
  return PodPhase::pending;
}

/// Looked up by name: kubelet sorts the statuses.
const json& main_container_status(const json& object) {
  static const json kNone = json::object();
  const std::string name = string_at(main_container(object), "name");
  for (const json& status : array_at(object_at(object, "status"), "containerStatuses")) {
    if (string_at(status, "name") == name) return status;
  }
  return kNone;
}

std::optional<ContainerExit> exit_of(const json& container_status) {
  const json& terminated = object_at(object_at(container_status, "state"), "terminated");
  if (terminated.empty()) return std::nullopt;
  return ContainerExit{.exit_code = number_at(terminated, "exitCode"),
                       .reason = string_at(terminated, "reason"),
                       .message = string_at(terminated, "message"),
                       .finished_at = time_at(terminated, "finishedAt"),
                       .started_at = time_at(terminated, "startedAt")};
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
    pod.waiting_since = time_at(condition, "lastTransitionTime");
  }
}

/// Of each pod there are thousands in the cache: what every pod says is not kept.
bool is_ordinary(const std::string& type) {
  for (const char* known :
       {"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"}) {
    if (type == known) return true;
  }
  return false;
}

std::vector<PodCondition> conditions_of(const json& status) {
  std::vector<PodCondition> conditions;
  for (const json& condition : array_at(status, "conditions")) {
    const std::string type = string_at(condition, "type");
    if (string_at(condition, "status") != "True" || is_ordinary(type)) continue;
    conditions.push_back({type, string_at(condition, "reason"), string_at(condition, "message")});
  }
  return conditions;
}

/// The annotation of the job, else of its pods: a port, or "off". What is neither is off, too. In
/// the network of a node the usual port may be anybody's: there only a given one is asked.
std::optional<int> progress_port_of(const json& object) {
  const json& worker = object_at(object_at(object_at(object, "spec"), "replicaSpecs"), "Worker");
  for (const json* owner : {&object, &object_at(worker, "template")}) {
    const json& annotations = object_at(object_at(*owner, "metadata"), "annotations");
    if (!annotations.contains(names::kAnnotationProgressPort)) continue;
    const std::string text = string_at(annotations, names::kAnnotationProgressPort);
    const auto port = parse_int(names::kAnnotationProgressPort, text, 1, 65535);
    return port ? std::optional(*port) : std::nullopt;
  }
  const bool in_network_of_node =
      bool_at(object_at(object_at(worker, "template"), "spec"), "hostNetwork");
  if (in_network_of_node) return std::nullopt;
  return names::kProgressPortDefault;
}

}  // namespace

ObjectMeta meta_from_json(const json& object) {
  const json& metadata = object_at(object, "metadata");
  ObjectMeta meta{.name = string_at(metadata, "name"),
                  .ns = string_at(metadata, "namespace"),
                  .uid = string_at(metadata, "uid"),
                  .resource_version = string_at(metadata, "resourceVersion"),
                  .generation = number_at<long long>(metadata, "generation"),
                  .controller_uid = {},
                  .creation_time = time_at(metadata, "creationTimestamp"),
                  .deletion_time = time_at(metadata, "deletionTimestamp")};
  for (const json& owner : array_at(metadata, "ownerReferences")) {
    if (bool_at(owner, "controller")) meta.controller_uid = string_at(owner, "uid");
  }
  return meta;
}

Result<TrainingJob> job_from_json(const json& object) {
  TrainingJob job{.meta = meta_from_json(object),
                  .spec = {},
                  .status = status_from_json(object_at(object, "status")),
                  .spec_error = {},
                  .annotation_error = {},
                  .progress_port = progress_port_of(object)};
  if (job.meta.name.empty()) {
    return Error{Code::invalid, "has no name; it must be a DNS label", "metadata.name", {}};
  }
  const json& spec = object_at(object, "spec");
  const auto errors = validate_spec(job.meta.name, spec);
  job.spec = spec_from_json(spec);
  if (!errors.empty()) job.spec_error = describe(errors.front());
  const auto annotation_errors = validate_annotations(object);
  if (!annotation_errors.empty()) job.annotation_error = describe(annotation_errors.front());
  return job;
}

json status_patch(const TrainingJob& job, const JobStatus& status) {
  return {{"metadata", {{"resourceVersion", job.meta.resource_version}}},
          {"status", to_json(status)}};
}

Result<Pod> trim_pod(const json& object) {
  Pod pod{.meta = meta_from_json(object)};
  if (pod.meta.name.empty()) {
    return Error{Code::invalid, "a pod without a name", "metadata.name", {}};
  }
  const json& status = object_at(object, "status");
  pod.job_name = label_of(object, names::kLabelTrainingJob);
  pod.worker_index = told_number(object, "RANK", names::kLabelWorkerIndex);
  pod.attempt = told_number(object, names::kEnvAttempt, names::kLabelAttempt);
  pod.phase = pod_phase(string_at(status, "phase"));
  const json& main_status = main_container_status(object);
  pod.ready = bool_at(main_status, "ready");
  pod.node = string_at(object_at(object, "spec"), "nodeName");
  if (pod.worker_index == 0) pod.ip = string_at(status, "podIP");
  pod.reason = string_at(status, "reason");
  pod.message = string_at(status, "message");
  read_waiting(status, pod);
  pod.conditions = conditions_of(status);
  pod.exit = exit_of(main_status);
  if (!pod.exit && pod.phase == PodPhase::failed) pod.exit = failed_init_exit(status);
  return pod;
}

Result<Node> trim_node(const json& object) {
  Node node{.meta = meta_from_json(object), .silent_since = {}};
  if (node.meta.name.empty()) {
    return Error{Code::invalid, "a node without a name", "metadata.name", {}};
  }
  for (const json& condition : array_at(object_at(object, "status"), "conditions")) {
    const bool is_silent =
        string_at(condition, "type") == "Ready" && string_at(condition, "status") == "Unknown";
    if (is_silent) node.silent_since = time_at(condition, "lastTransitionTime");
  }
  return node;
}

Result<Service> trim_service(const json& object) {
  Service service{.meta = meta_from_json(object), .job_name = {}, .first_attempt = {}};
  if (service.meta.name.empty()) {
    return Error{Code::invalid, "a Service without a name", "metadata.name", {}};
  }
  service.job_name = label_of(object, names::kLabelTrainingJob);
  service.first_attempt = first_attempt_of(object);
  return service;
}

}  // namespace tj
