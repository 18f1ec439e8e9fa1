#include "operator/plan/manifest.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "contract/launch_env.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/plan/gang.h"

namespace tj {
namespace {
using nlohmann::json;

constexpr const char* kComponent = "trainingjob-operator";
// Goes up with each change of template_hash(): a hash of another version says nothing.
const std::string kHashVersion = "v1-";
// On each namespace, by the API server (KEP-2161).
constexpr const char* kNamespaceNameLabel = "kubernetes.io/metadata.name";
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

/// GPUs per worker from the container's limits.
std::optional<int> gpu_count(const json& container) {
  for (const char* resource : kGpuResources) {
    const auto count = parse_int(resource, quantity_of(container, "limits", resource), 1, 1024);
    if (count) return *count;
  }
  return std::nullopt;
}

json from_field(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

json launch_variables(const TrainingJob& job, const CreatePod& action, const json& main_container) {
  const LaunchEnv launch{.world_size = world_size_of(job),
                         .rank = action.worker_index,
                         .master_addr = names::master_addr(job.meta.name),
                         .master_port = job.spec.master_port,
                         .nproc_per_node = job.spec.nproc_per_node ? job.spec.nproc_per_node
                                                                   : gpu_count(main_container),
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

// A template that validate_template.h has passed has the right types here. Any other is taken as it
// comes: what stands in the way of what the operator adds is replaced, and nothing throws.

json& object_in(json& parent, const char* key) {
  json& value = parent[key];
  if (!value.is_object()) value = json::object();
  return value;
}

json& list_in(json& parent, const char* key) {
  json& value = parent[key];
  if (!value.is_array()) value = json::array();
  return value;
}

/// The contract comes first: the user's variables may refer to it with $(VAR), which expands only
/// backwards.
void inject(json& spec, const char* list, const json& variables) {
  if (read::array_at(spec, list).empty()) return;
  for (json& container : spec[list]) {
    if (!container.is_object()) continue;
    json merged = variables;
    for (const json& own : read::array_at(container, "env")) merged.push_back(own);
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

std::string hex(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

/// The same news about the same job has the same name, so that it can't be recorded twice.
std::string event_name(const TrainingJob& job, const PlannedEvent& event) {
  const std::string news = job.meta.uid + "|" + std::to_string(job.meta.generation) + "|" +
                           std::to_string(job.status.attempt) + "|" + event.reason + "|" +
                           event.message;
  return job.meta.name + "." + hex(fnv1a(news));
}

/// A silent node is given up after the job's own bound, not after the server's five minutes. The
/// user's own word on it holds.
void tolerate_silence(json& spec, std::chrono::seconds tolerance) {
  constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";
  json& tolerations = list_in(spec, "tolerations");
  for (const json& own : tolerations) {
    const std::string key = read::string_at(own, "key");
    if (key.empty() || key == kUnreachable) return;
  }
  tolerations.push_back({{"key", kUnreachable},
                         {"operator", "Exists"},
                         {"effect", "NoExecute"},
                         {"tolerationSeconds", tolerance.count()}});
}

/// Terms of a node selector are alternatives: each of them must keep the nodes out, but for an
/// empty one, which matches no node. The server takes one name for each field requirement.
void keep_off(json& spec, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return;
  json& of_nodes = object_in(object_in(spec, "affinity"), "nodeAffinity");
  json& required = object_in(of_nodes, "requiredDuringSchedulingIgnoredDuringExecution");
  json& terms = list_in(required, "nodeSelectorTerms");
  if (terms.empty()) terms.push_back({{"matchFields", json::array()}});
  for (json& term : terms) {
    if (!term.is_object() || term.empty()) continue;
    json& requirements = list_in(term, "matchFields");
    for (const std::string& node : nodes) {
      requirements.push_back(
          {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::array({node})}});
    }
  }
}

}  // namespace

std::string template_hash(const JobSpec& spec) {
  const std::string nproc = spec.nproc_per_node ? std::to_string(*spec.nproc_per_node) : "auto";
  return kHashVersion +
         hex(fnv1a(spec.pod_template_json + "|" + std::to_string(spec.master_port) + "|" + nproc));
}

bool is_comparable_hash(const std::string& hash) { return hash.starts_with(kHashVersion); }

std::string owned_selector() { return names::kLabelTrainingJob; }

std::string job_selector(const std::string& job_name) {
  return std::string(names::kLabelJobName) + "=" + job_name + "," + names::kLabelTrainingJob + "=" +
         job_name;
}

json make_pod(const TrainingJob& job, const CreatePod& action) {
  json pod = json::parse(job.spec.pod_template_json, nullptr, false);
  if (!pod.is_object()) pod = json::object();
  const std::string name = names::worker_pod(job.meta.name, action.worker_index);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  json& metadata = object_in(pod, "metadata");
  metadata["name"] = name;
  metadata["namespace"] = job.meta.ns;
  json& labels = object_in(metadata, "labels");
  labels.update(labels_of(job));
  labels[names::kLabelWorkerIndex] = std::to_string(action.worker_index);
  labels[names::kLabelAttempt] = std::to_string(action.attempt);
  metadata["ownerReferences"] = json::array({owner_reference(job)});
  json& spec = object_in(pod, "spec");
  spec["restartPolicy"] = "Never";  // a restarted process can't join its gang again
  spec["hostname"] = name;
  spec["subdomain"] = job.meta.name;
  tolerate_silence(spec, job.spec.node_loss.tolerance);
  keep_off(spec, job.status.excluded_nodes);
  json* const main = main_container_in(pod);
  if (main != nullptr) main->emplace("terminationMessagePolicy", "FallbackToLogsOnError");
  const json variables = launch_variables(job, action, main_container(pod));
  inject(spec, "initContainers", variables);
  inject(spec, "containers", variables);
  return pod;
}

json make_service(const TrainingJob& job) {
  json annotations = json::object();
  if (job.status.attempt == 0) {
    annotations = {{names::kAnnotationWorldSize, std::to_string(world_size_of(job))},
                   {names::kAnnotationTemplateHash, job.status.template_hash}};
  }
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", job.meta.name},
            {"namespace", job.meta.ns},
            {"labels", labels_of(job)},
            {"annotations", std::move(annotations)},
            {"ownerReferences", json::array({owner_reference(job)})}}},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", labels_of(job)},
            {"ports",
             json::array(
                 {{{"name", "master"}, {"port", job.spec.master_port}, {"protocol", "TCP"}}})}}}};
}

json make_network_policy(const TrainingJob& job, const std::string& operator_ns) {
  const json own_pods{{"matchLabels", labels_of(job)}};
  json ingress = json::array({{{"from", json::array({{{"podSelector", own_pods}}})}}});
  if (job.progress_port && !operator_ns.empty()) {
    const json operators{
        {"namespaceSelector", {{"matchLabels", {{kNamespaceNameLabel, operator_ns}}}}},
        {"podSelector", {{"matchLabels", {{kOperatorLabel, kOperatorLabelValue}}}}}};
    const json port{{"protocol", "TCP"}, {"port", *job.progress_port}};
    ingress.push_back({{"from", json::array({operators})}, {"ports", json::array({port})}});
  }
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata",
           {{"name", job.meta.name},
            {"namespace", job.meta.ns},
            {"labels", labels_of(job)},
            {"ownerReferences", json::array({owner_reference(job)})}}},
          {"spec",
           {{"podSelector", own_pods},
            {"policyTypes", json::array({"Ingress"})},
            {"ingress", std::move(ingress)}}}};
}

std::string network_policy_hash(const TrainingJob& job) {
  if (!job.spec.network.network_policy) return {};
  return hex(fnv1a(make_network_policy(job, "operators")["spec"].dump()));
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
