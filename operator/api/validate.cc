// The rules of manifests/crd/trainingjobs.yaml in C++: tests/crd holds both to one table of
// manifests. What the pod template holds beyond the fields that a rule reads is left to the server
// that makes the pods.
#include "operator/api/validate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "operator/api/field.h"

namespace tj {
namespace {

using field::child;
using field::Field;
using field::item;
using field::shown;
using nlohmann::json;

constexpr long long kWorkersMax = 10000;
constexpr std::size_t kContainersMax = 64;
constexpr std::size_t kEnvVarsMax = 1024;
constexpr std::size_t kEnvNameCharsMax = 1024;

constexpr std::string_view kManifestFields[] = {"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::string_view kMetadataFields[] = {"annotations",
                                                "creationTimestamp",
                                                "deletionGracePeriodSeconds",
                                                "deletionTimestamp",
                                                "finalizers",
                                                "generateName",
                                                "generation",
                                                "labels",
                                                "managedFields",
                                                "name",
                                                "namespace",
                                                "ownerReferences",
                                                "resourceVersion",
                                                "selfLink",
                                                "uid"};
constexpr std::string_view kSpecFields[] = {"replicaSpecs"};
constexpr std::string_view kWorkerFields[] = {"replicas", "template"};
constexpr std::string_view kTemplateFields[] = {"metadata", "spec"};

/// Collects what is wrong, in the order of the manifest.
class Checker {
 public:
  std::vector<FieldError> take() { return std::move(errors_); }

  void check_manifest(const json& manifest);
  void check_spec(const std::string& job_name, const Field& spec);

 private:
  void add(const Field& field, std::string message) {
    errors_.push_back({.field = field.path, .message = std::move(message)});
  }
  /// True if there is an object; else says what must stand there.
  bool require_object(const Field& field, const std::string& meaning);
  void check_known_fields(const Field& object, field::Names known);
  void check_constant(const Field& field, const std::string& wanted);

  void check_name(const std::string& job_name);
  std::optional<long long> check_replicas(const Field& worker);
  void check_name_length(const std::string& job_name, long long worker_count);
  void check_template(const Field& pod_template);
  void check_pod_metadata(const Field& metadata);
  void check_containers(const Field& list);
  void check_env(const Field& env);
  void check_env_name(const Field& name);

  std::vector<FieldError> errors_;
};

bool Checker::require_object(const Field& field, const std::string& meaning) {
  if (field.value == nullptr) {
    add(field, "is missing; it must be " + meaning);
  } else if (!field.value->is_object()) {
    add(field, "is " + shown(*field.value) + "; it must be an object: " + meaning);
  } else {
    return true;
  }
  return false;
}

void Checker::check_known_fields(const Field& object, field::Names known) {
  if (object.value == nullptr || !object.value->is_object()) return;
  for (const auto& [name, value] : object.value->items()) {
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (!is_known) add(child(object, name), field::unknown_message(name, known));
  }
}

void Checker::check_constant(const Field& field, const std::string& wanted) {
  if (field.value == nullptr) {
    add(field, "is missing; it must be \"" + wanted + "\"");
  } else if (*field.value != wanted) {
    add(field, "is " + shown(*field.value) + "; it must be \"" + wanted + "\"");
  }
}

void Checker::check_manifest(const json& manifest) {
  const Field root{.value = &manifest, .path = ""};
  if (!manifest.is_object()) {
    add({.value = &manifest, .path = "manifest"},
        "is " + shown(manifest) + "; it must be a TrainingJob object");
    return;
  }
  check_constant(child(root, "apiVersion"), names::kApiVersion);
  check_constant(child(root, "kind"), names::kKind);
  check_known_fields(root, kManifestFields);
  const Field metadata = child(root, "metadata");
  std::string job_name;
  if (require_object(metadata, "an object with the job's name")) {
    check_known_fields(metadata, kMetadataFields);
    const Field name = child(metadata, "name");
    if (name.value == nullptr) {
      add(name, "is missing; it must be the name of the job");
    } else if (!name.value->is_string()) {
      add(name, "is " + shown(*name.value) +
                    "; it must be a text (in quotes, if it looks like a number)");
    } else {
      job_name = name.value->get<std::string>();
      if (job_name.empty()) add(name, "is empty; it must be the name of the job");
    }
  }
  const Field spec = child(root, "spec");
  const Field worker = child(child(spec, "replicaSpecs"), "Worker");
  check_known_fields(spec, kSpecFields);
  check_known_fields(worker, kWorkerFields);
  check_known_fields(child(worker, "template"), kTemplateFields);
  check_spec(job_name, spec);
}

/// An empty `job_name` is one that could not be read: it is reported elsewhere.
void Checker::check_spec(const std::string& job_name, const Field& spec) {
  if (!job_name.empty()) check_name(job_name);
  if (!require_object(spec, "an object with replicaSpecs")) return;
  const Field replica_specs = child(spec, "replicaSpecs");
  if (!require_object(replica_specs, "an object with the entry Worker")) return;
  for (const auto& [name, value] : replica_specs.value->items()) {
    if (name != "Worker")
      add(child(replica_specs, name), "is not allowed; the only entry must be Worker");
  }
  const Field worker = child(replica_specs, "Worker");
  if (!require_object(worker, "an object with replicas and template")) return;
  const auto worker_count = check_replicas(worker);
  if (worker_count && !job_name.empty()) check_name_length(job_name, *worker_count);
  check_template(child(worker, "template"));
}

/// RFC 1035: the name becomes the name of a Service.
void Checker::check_name(const std::string& job_name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool chars_fit = std::all_of(job_name.begin(), job_name.end(), [&](char c) {
    return is_lower(c) || is_digit(c) || c == '-';
  });
  const bool ends_fit = is_lower(job_name.front()) && job_name.back() != '-';
  if (chars_fit && ends_fit) return;
  add({.value = nullptr, .path = "metadata.name"},
      "is " + shown(job_name) +
          "; it must be lower case letters, digits and '-', start with a letter and end with a " +
          "letter or digit, as in [a-z]([-a-z0-9]*[a-z0-9])?");
}

void Checker::check_name_length(const std::string& job_name, long long worker_count) {
  const std::string suffix = "-worker-" + std::to_string(worker_count - 1);
  const std::size_t name_chars_max = names::kDnsLabelMax - suffix.size();
  if (job_name.size() <= name_chars_max) return;
  add({.value = nullptr, .path = "metadata.name"},
      "is " + shown(job_name) + ", " + std::to_string(job_name.size()) +
          " characters; it must have at most " + std::to_string(name_chars_max) +
          ", so that the longest pod name, <name>" + suffix + ", fits in " +
          std::to_string(names::kDnsLabelMax) + " characters");
}

std::optional<long long> Checker::check_replicas(const Field& worker) {
  const Field replicas = child(worker, "replicas");
  if (replicas.value == nullptr) return 1;
  if (replicas.value->is_number_integer()) {
    const bool fits =
        !replicas.value->is_number_unsigned() ||
        replicas.value->get<std::uint64_t>() <= static_cast<std::uint64_t>(kWorkersMax);
    const auto count = fits ? replicas.value->get<long long>() : 0;
    if (count >= 1 && count <= kWorkersMax) return count;
  }
  add(replicas, "is " + shown(*replicas.value) + "; it must be a whole number from 1 to " +
                    std::to_string(kWorkersMax));
  return std::nullopt;
}

void Checker::check_template(const Field& pod_template) {
  if (!require_object(pod_template, "a pod template")) return;
  check_pod_metadata(child(pod_template, "metadata"));
  const Field spec = child(pod_template, "spec");
  if (!require_object(spec, "a pod's specification with containers")) return;
  const Field restart_policy = child(spec, "restartPolicy");
  if (restart_policy.value != nullptr && *restart_policy.value != "Never") {
    add(restart_policy, "is " + shown(*restart_policy.value) +
                            "; it must be \"Never\" or left out: a worker that is restarted alone "
                            "can't rejoin its gang");
  }
  const Field containers = child(spec, "containers");
  if (containers.value == nullptr) {
    add(containers, "is missing; it must be a list of at least one container");
  } else if (containers.value->is_array() && containers.value->empty()) {
    add(containers, "is an empty list; it must be a list of at least one container");
  } else {
    check_containers(containers);
  }
  const Field init_containers = child(spec, "initContainers");
  if (init_containers.value != nullptr) check_containers(init_containers);
}

void Checker::check_pod_metadata(const Field& metadata) {
  if (metadata.value == nullptr) return;
  if (!require_object(metadata, "labels and annotations")) return;
  for (const char* list : {"labels", "annotations"}) {
    const Field texts = child(metadata, list);
    if (texts.value == nullptr || !require_object(texts, "names and texts")) continue;
    for (const auto& [name, value] : texts.value->items()) {
      if (value.is_string()) continue;
      add(child(texts, name), "is " + shown(value) + "; it must be a text: put it in quotes");
    }
  }
}

void Checker::check_containers(const Field& list) {
  if (!list.value->is_array())
    return add(list, "is " + shown(*list.value) + "; it must be a list of containers");
  if (list.value->size() > kContainersMax) {
    return add(list, "has " + std::to_string(list.value->size()) +
                         " entries; it must have at most " + std::to_string(kContainersMax));
  }
  for (std::size_t i = 0; i < list.value->size(); ++i) {
    const Field container = item(list, i);
    if (!require_object(container, "a container")) continue;
    const Field name = child(container, "name");
    const bool has_name = name.value != nullptr && name.value->is_string() && *name.value != "";
    if (!has_name) {
      add(name, (name.value == nullptr ? "is missing" : "is " + shown(*name.value)) +
                    "; it must be the container's name");
    }
    const Field env = child(container, "env");
    if (env.value != nullptr) check_env(env);
  }
}

void Checker::check_env(const Field& env) {
  if (!env.value->is_array()) {
    return add(env, "is " + shown(*env.value) +
                        "; it must be a list of variables, as in [{name: A, value: b}]");
  }
  if (env.value->size() > kEnvVarsMax) {
    return add(env, "has " + std::to_string(env.value->size()) + " entries; it must have at most " +
                        std::to_string(kEnvVarsMax));
  }
  for (std::size_t i = 0; i < env.value->size(); ++i) {
    const Field variable = item(env, i);
    if (!require_object(variable, "a variable, as in {name: A, value: b}")) continue;
    check_env_name(child(variable, "name"));
    const Field value = child(variable, "value");
    if (value.value != nullptr && !value.value->is_string()) {
      add(value, "is " + shown(*value.value) + "; it must be a text: put it in quotes");
    }
  }
}

void Checker::check_env_name(const Field& name) {
  if (name.value == nullptr) return add(name, "is missing; it must be the variable's name");
  const bool is_name = name.value->is_string() && *name.value != "" &&
                       name.value->get_ref<const std::string&>().size() <= kEnvNameCharsMax;
  if (!is_name) {
    return add(name, "is " + shown(*name.value) + "; it must be a text of 1 to " +
                         std::to_string(kEnvNameCharsMax) + " characters");
  }
  const auto reserved = reserved_env_names();
  const bool is_reserved =
      std::find(reserved.begin(), reserved.end(), name.value->get<std::string>()) != reserved.end();
  if (is_reserved) {
    add(name, "is " + shown(*name.value) +
                  "; it must be another name: the operator sets this variable for each worker");
  }
}

}  // namespace

std::string describe(const FieldError& error) { return error.field + ": " + error.message; }

std::string describe(const std::vector<FieldError>& errors) {
  std::string text;
  for (const auto& error : errors) text += (text.empty() ? "" : "\n") + describe(error);
  return text;
}

std::vector<FieldError> validate_manifest(const json& manifest) {
  Checker checker;
  checker.check_manifest(manifest);
  return checker.take();
}

std::vector<FieldError> validate_spec(const std::string& job_name, const json& spec) {
  Checker checker;
  checker.check_spec(job_name, {.value = &spec, .path = "spec"});
  return checker.take();
}

}  // namespace tj
