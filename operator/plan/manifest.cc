#include "operator/plan/manifest.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "contract/launch_env.h"

namespace tj {
namespace {
using nlohmann::json;

constexpr const char* kComponent = "trainingjob-operator";
// Any of these in the first container's limits counts as GPUs of a worker.
constexpr const char* kGpuResources[] = {"nvidia.com/gpu", "amd.com/gpu"};

json owner_reference(const TrainingJob& job) {
  return {{"apiVersion", names::kApiVersion},
          {"kind", names::kKind},
          {"name", job.meta.name},
          {"uid", job.meta.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

json job_reference(const TrainingJob& job) {
  return {{"apiVersion", names::kApiVersion},
          {"kind", names::kKind},
          {"name", job.meta.name},
          {"namespace", job.meta.ns},
          {"uid", job.meta.uid},
          {"resourceVersion", job.meta.resource_version}};
}

/// GPUs per worker from the container's limits; a quantity is a number or its text.
std::optional<int> gpu_count(const json& container) {
  for (const char* resource : kGpuResources) {
    const auto limit = json::json_pointer("/resources/limits") / std::string(resource);
    if (!container.contains(limit)) continue;
    const json& quantity = container.at(limit);
    const std::string text = quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
    const auto count = parse_int(resource, text, 1, 1024);
    if (count) return *count;
  }
  return std::nullopt;
}

json from_field(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

json launch_variables(const TrainingJob& job, const CreatePod& action, const json& main_container) {
  const LaunchEnv launch{.world_size = job.spec.worker_count,
                         .rank = action.worker_index,
                         .master_addr = names::master_addr(job.meta.name),
                         .master_port = names::kMasterPortDefault,
                         .nproc_per_node = gpu_count(main_container),
                         .job_name = job.meta.name,
                         .job_namespace = job.meta.ns,
                         .job_uid = job.meta.uid,
                         .attempt = action.attempt};
  json variables = json::array();
  for (const EnvVar& variable : to_env(launch)) {
    variables.push_back({{"name", variable.name}, {"value", variable.value}});
  }
  variables.push_back(from_field(names::kEnvPodIp, "status.podIP"));
  variables.push_back(from_field(names::kEnvNodeName, "spec.nodeName"));
  return variables;
}

/// The contract comes first: the user's variables may refer to it with $(VAR), which expands only
/// backwards.
void inject(json& spec, const char* list, const json& variables) {
  if (!spec.contains(list) || !spec[list].is_array()) return;
  for (json& container : spec[list]) {
    json merged = variables;
    if (container.contains("env") && container["env"].is_array()) {
      for (const json& own : container["env"]) merged.push_back(own);
    }
    container["env"] = std::move(merged);
  }
}

json labels_of(const TrainingJob& job) {
  return {{names::kLabelJobName, job.meta.name}, {names::kLabelTrainingJob, job.meta.name}};
}

std::uint64_t fnv1a(const std::string& text) {  // Fowler, Noll, Vo: FNV-1a, 64 bit
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  return hash;
}

/// The same news about the same job has the same name, so that it can't be recorded twice.
std::string event_name(const TrainingJob& job, const PlannedEvent& event) {
  char digits[17];
  const std::string news = job.meta.uid + "|" + std::to_string(job.meta.generation) + "|" +
                           std::to_string(job.status.attempt) + "|" + event.reason + "|" +
                           event.message;
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(fnv1a(news)));
  return job.meta.name + "." + digits;
}

}  // namespace

std::string owned_selector() { return names::kLabelTrainingJob; }

std::string job_selector(const std::string& job_name) {
  return std::string(names::kLabelJobName) + "=" + job_name + "," + names::kLabelTrainingJob + "=" +
         job_name;
}

json make_pod(const TrainingJob& job, const CreatePod& action) {
  json pod = json::parse(job.spec.pod_template_json);
  const std::string name = names::worker_pod(job.meta.name, action.worker_index);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  json& metadata = pod["metadata"];
  metadata["name"] = name;
  metadata["namespace"] = job.meta.ns;
  metadata["labels"].update(labels_of(job));
  metadata["labels"][names::kLabelWorkerIndex] = std::to_string(action.worker_index);
  metadata["labels"][names::kLabelAttempt] = std::to_string(action.attempt);
  metadata["ownerReferences"] = json::array({owner_reference(job)});
  json& spec = pod["spec"];
  spec["restartPolicy"] = "Never";  // a restarted process can't join its gang again
  spec["hostname"] = name;
  spec["subdomain"] = job.meta.name;
  json& main_container = spec["containers"][0];
  if (!main_container.contains("terminationMessagePolicy")) {
    main_container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  }
  const json variables = launch_variables(job, action, main_container);
  inject(spec, "initContainers", variables);
  inject(spec, "containers", variables);
  return pod;
}

json make_service(const TrainingJob& job) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata",
       {{"name", job.meta.name},
        {"namespace", job.meta.ns},
        {"labels", labels_of(job)},
        {"ownerReferences", json::array({owner_reference(job)})}}},
      {"spec",
       {{"clusterIP", "None"},
        {"publishNotReadyAddresses", true},
        {"selector", labels_of(job)},
        {"ports",
         json::array(
             {{{"name", "master"}, {"port", names::kMasterPortDefault}, {"protocol", "TCP"}}})}}}};
}

json make_event(const TrainingJob& job, const PlannedEvent& event, TimePoint now) {
  const std::string time = format_time(now);
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", event_name(job, event)}, {"namespace", job.meta.ns}}},
          {"involvedObject", job_reference(job)},
          {"reason", event.reason},
          {"message", event.message},
          {"type", event.warning ? "Warning" : "Normal"},
          {"firstTimestamp", time},
          {"lastTimestamp", time},
          {"count", 1},
          {"source", {{"component", kComponent}}},
          {"reportingComponent", kComponent}};
}

}  // namespace tj
