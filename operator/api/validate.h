// Every rule on a TrainingJob that can be checked without a cluster. `tj run` applies it before
// anything starts; in a cluster the CRD holds the same rules, and the operator checks those that
// CEL's budget or the open template forbids.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tj {

/// `field` is a path such as spec.replicaSpecs.Worker.replicas; `message` says the value and what
/// would be right.
struct FieldError {
  std::string field;
  std::string message;
  bool operator==(const FieldError&) const = default;
};
std::string describe(const FieldError& error);                // "field: message"
std::string describe(const std::vector<FieldError>& errors);  // one per line

/// Checks a whole manifest as a person wrote it: kind, name, unknown fields, and the spec. Empty:
/// valid.
std::vector<FieldError> validate_manifest(const nlohmann::json& manifest);

/// Checks the annotations of the job and of its template, of which validate_manifest() refuses a
/// wrong one. In the operator such a job runs, with a warning.
std::vector<FieldError> validate_annotations(const nlohmann::json& manifest);

/// Checks what decides in the operator: counts, names, the template, reserved variables. Empty:
/// valid.
std::vector<FieldError> validate_spec(const std::string& job_name, const nlohmann::json& spec);

}  // namespace tj
