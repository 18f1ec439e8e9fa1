// The rules of manifests/crd/trainingjobs.yaml in C++: tests/crd holds both to one table of
// manifests.
#include "operator/api/validate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "operator/api/policy_fields.h"
#include "operator/api/validate_policy.h"
#include "operator/api/validate_template.h"

namespace tj {
namespace {

using field::child;
using field::Field;
using field::FieldChecker;
using field::shown;
using field::UnknownFields;
using nlohmann::json;

constexpr int kPortMax = 65535;

constexpr std::string_view kApiVersions[] = {names::kApiVersion};
constexpr std::string_view kKinds[] = {names::kKind};
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
constexpr std::string_view kWorkerFields[] = {"replicas", "template"};

/// RFC 1035: the name becomes the name of a Service.
void check_name(FieldChecker& checker, const std::string& job_name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool chars_fit = std::all_of(job_name.begin(), job_name.end(), [&](char c) {
    return is_lower(c) || is_digit(c) || c == '-';
  });
  const bool ends_fit = is_lower(job_name.front()) && job_name.back() != '-';
  if (chars_fit && ends_fit) return;
  checker.add(
      {.value = nullptr, .path = "metadata.name"},
      "is " + shown(job_name) +
          "; it must be lower case letters, digits and '-', start with a letter and end with a " +
          "letter or digit, as in [a-z]([-a-z0-9]*[a-z0-9])?");
}

void check_name_length(FieldChecker& checker, const std::string& job_name, long long worker_count) {
  const std::string suffix = "-worker-" + std::to_string(worker_count - 1);
  const std::size_t name_chars_max = names::kDnsLabelMax - suffix.size();
  if (job_name.size() <= name_chars_max) return;
  checker.add({.value = nullptr, .path = "metadata.name"},
              "is " + shown(job_name) + ", " + std::to_string(job_name.size()) +
                  " characters; it must have at most " + std::to_string(name_chars_max) +
                  ", so that the longest pod name, <name>" + suffix + ", fits in " +
                  std::to_string(names::kDnsLabelMax) + " characters");
}

void check_replica_specs(FieldChecker& checker, const std::string& job_name,
                         const Field& replica_specs) {
  if (!checker.require_object(replica_specs, "an object with the entry Worker")) return;
  for (const auto& [name, value] : replica_specs.value->items()) {
    if (name != "Worker")
      checker.add(child(replica_specs, name), "is not allowed; the only entry must be Worker");
  }
  const Field worker = child(replica_specs, "Worker");
  if (!checker.require_object(worker, "an object with replicas and template")) return;
  checker.check_known_fields(worker, kWorkerFields);
  const Field replicas = child(worker, "replicas");
  const auto worker_count =
      replicas.value == nullptr ? 1 : checker.check_whole_number(replicas, field::kWorkers);
  if (worker_count && !job_name.empty()) check_name_length(checker, job_name, *worker_count);
  check_template(checker, child(worker, "template"));
}

field::Names spec_fields() {
  static const auto kFields = [] {
    auto fields = field::field_names<JobSpec>();
    fields.insert(fields.begin(), "replicaSpecs");
    return fields;
  }();
  return kFields;
}

/// An empty `job_name` is one that could not be read: it is reported elsewhere.
void check_spec(FieldChecker& checker, const std::string& job_name, const Field& spec) {
  if (!job_name.empty()) check_name(checker, job_name);
  if (!checker.require_object(spec, "an object with replicaSpecs")) return;
  checker.check_known_fields(spec, spec_fields());
  check_replica_specs(checker, job_name, child(spec, "replicaSpecs"));
  check_policy(checker, spec);
}

void check_progress_port(FieldChecker& checker, const Field& metadata) {
  const Field port = child(child(metadata, "annotations"), names::kAnnotationProgressPort);
  if (port.value == nullptr) return;
  const std::string text = port.value->is_string() ? port.value->get<std::string>() : "";
  const bool fits = text == "off" || parse_int(names::kAnnotationProgressPort, text, 1, kPortMax);
  if (fits) return;
  checker.add(port, "is " + shown(*port.value) + "; it must be a port from 1 to " +
                        std::to_string(kPortMax) + ", in quotes, or \"off\"");
}

void check_annotations(FieldChecker& checker, const Field& root) {
  const Field worker = child(child(child(root, "spec"), "replicaSpecs"), "Worker");
  for (const Field& owner : {root, child(worker, "template")}) {
    check_progress_port(checker, child(owner, "metadata"));
  }
}

/// The job's name; empty if it can't be read.
std::string check_metadata(FieldChecker& checker, const Field& metadata) {
  if (!checker.require_object(metadata, "an object with the job's name")) return {};
  checker.check_known_fields(metadata, kMetadataFields);
  const Field name = child(metadata, "name");
  if (name.value == nullptr) {
    checker.add(name, "is missing; it must be the name of the job");
  } else if (!name.value->is_string()) {
    checker.add(name, "is " + shown(*name.value) +
                          "; it must be a text (in quotes, if it looks like a number)");
  } else {
    const auto job_name = name.value->get<std::string>();
    if (job_name.empty()) checker.add(name, "is empty; it must be the name of the job");
    return job_name;
  }
  return {};
}

void check_manifest(FieldChecker& checker, const json& manifest) {
  const Field root{.value = &manifest, .path = ""};
  if (!manifest.is_object()) {
    return checker.add({.value = &manifest, .path = "manifest"},
                       "is " + shown(manifest) + "; it must be a TrainingJob object");
  }
  checker.require_choice(child(root, "apiVersion"), kApiVersions);
  checker.require_choice(child(root, "kind"), kKinds);
  checker.check_known_fields(root, kManifestFields);
  const std::string job_name = check_metadata(checker, child(root, "metadata"));
  check_annotations(checker, root);
  check_spec(checker, job_name, child(root, "spec"));
}

}  // namespace

std::string describe(const FieldError& error) { return error.field + ": " + error.message; }

std::string describe(const std::vector<FieldError>& errors) {
  std::string text;
  for (const auto& error : errors) text += (text.empty() ? "" : "\n") + describe(error);
  return text;
}

std::vector<FieldError> validate_manifest(const json& manifest) {
  FieldChecker checker(UnknownFields::refused);
  check_manifest(checker, manifest);
  return checker.take();
}

std::vector<FieldError> validate_annotations(const json& manifest) {
  FieldChecker checker(UnknownFields::ignored);
  check_annotations(checker, {.value = &manifest, .path = ""});
  return checker.take();
}

std::vector<FieldError> validate_spec(const std::string& job_name, const json& spec) {
  FieldChecker checker(UnknownFields::ignored);
  check_spec(checker, job_name, {.value = &spec, .path = "spec"});
  return checker.take();
}

}  // namespace tj
