// What to write in place of a manifest of another kind that runs workers, too: a Job of batch/v1, a
// PyTorchJob or TrainJob of Kubeflow, a JobSet or a LeaderWorkerSet. Pure; it is made from the
// manifest's own fields, which anybody may have written. What has no counterpart is said, in a line
// each.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/validate.h"

namespace tj {

struct ConvertedJob {
  std::string complaint;           // what it is, and what it must be
  nlohmann::json manifest;         // the TrainingJob; a valid one where there are no errors
  std::vector<std::string> notes;  // what is left out, or means something else now
  std::vector<FieldError> errors;  // of the fields of what was read
};

/// Absent where `object` is of no such kind.
std::optional<ConvertedJob> convert_job(const nlohmann::json& object);

/// Those of all documents of a file, and of the Lists among them. None where one of the documents
/// is a TrainingJob: that is then what the file is about.
std::vector<ConvertedJob> convert_jobs(const std::vector<nlohmann::json>& documents);

/// The manifest as YAML, with the notes as comments above it.
std::string text_of(const ConvertedJob& job);

}  // namespace tj
