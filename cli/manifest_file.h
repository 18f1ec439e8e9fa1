// A manifest file as the commands take it: read, parsed, exactly one TrainingJob found in it,
// checked by the rules of the operator. Nothing starts before all of that is right.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

inline constexpr std::size_t kManifestBytesMax = 3 * 1024 * 1024;  // what an API server accepts

struct JobManifest {
  nlohmann::json job;
  std::string name;
  std::filesystem::path folder;      // absolute: where the file lies; the current one for stdin
  std::vector<std::string> ignored;  // "ConfigMap settings": other objects of the file
};

/// What messages call it: "standard input" for "-".
std::string source_name(const std::string& file);

/// All objects of the file; "-" is standard input, which can be read once.
Result<std::vector<nlohmann::json>> read_documents(const std::string& file);

/// The one TrainingJob among them. The error's message holds every field that is wrong, one per
/// line.
Result<JobManifest> job_manifest(const std::vector<nlohmann::json>& documents,
                                 const std::string& file);

/// What only a run on this machine needs: commands, volumes and variables that a local process can
/// have.
Result<void> check_runs_locally(const JobManifest& manifest, const std::string& file);

}  // namespace tj
