#include "cli/manifest_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/job_conversion.h"
#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/api/validate.h"
#include "operator/local/pod_command.h"
#include "operator/plan/manifest.h"
#include "yaml/yaml_json.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Error wrong(const std::string& file, std::string message) {
  return Error{
      .code = Code::invalid, .message = std::move(message), .subject = file, .retry_after = {}};
}

Result<std::string> read_text(const std::string& file) {
  std::error_code ignored;
  if (file != "-" && fs::is_directory(file, ignored))
    return wrong(file, "is a folder; it must be a file");
  std::ifstream opened;
  if (file != "-") {
    opened.open(file, std::ios::binary);
    if (!opened) return wrong(file, std::string("cannot be read: ") + std::strerror(errno));
  }
  std::istream& input = file == "-" ? std::cin : opened;
  std::string text(kManifestBytesMax + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  if (text.size() > kManifestBytesMax) {
    return wrong(file, "has more than " + std::to_string(kManifestBytesMax) +
                           " bytes; it must be a manifest");
  }
  return text;
}

std::string kind_of(const Json& document) { return read::string_at(document, "kind"); }

std::string title_of(const Json& document) {
  const std::string name = meta_from_json(document).name;
  std::string title = kind_of(document).empty() ? "an object without kind" : kind_of(document);
  return name.empty() ? title : title + " " + name;
}

/// The TrainingJob, or the only document whatever it is: then its kind is one of the fields that
/// are wrong.
Result<Json> the_job(const std::vector<Json>& documents, const std::string& file,
                     std::vector<std::string>& ignored) {
  if (documents.empty()) return wrong(file, "is empty; it must hold one TrainingJob");
  if (const auto others = convert_jobs(documents); !others.empty())
    return wrong(file, others.front().complaint + "; `tj validate` prints what to write instead");
  if (documents.size() == 1) return documents.front();
  const Json* job = nullptr;
  for (const Json& document : documents) {
    if (kind_of(document) != names::kKind) {
      ignored.push_back(title_of(document));
    } else if (job != nullptr) {
      return wrong(file, "holds more than one TrainingJob (" + title_of(*job) + ", " +
                             title_of(document) + "); it must hold exactly one");
    } else {
      job = &document;
    }
  }
  if (job == nullptr) {
    return wrong(file, "holds " + std::to_string(documents.size()) +
                           " objects and no TrainingJob; it must hold one");
  }
  return *job;
}

std::string one_per_line(const std::string& file, const std::vector<FieldError>& errors) {
  std::string text;
  for (const FieldError& error : errors)
    text += (text.empty() ? "" : "\n" + file + ": ") + describe(error);
  return text;
}

}  // namespace

std::string source_name(const std::string& file) { return file == "-" ? "standard input" : file; }

Result<std::vector<Json>> read_documents(const std::string& file) {
  const auto text = read_text(file);
  if (!text) return text.error();
  return parse_yaml(*text, source_name(file));
}

Result<JobManifest> job_manifest(const std::vector<Json>& documents, const std::string& file) {
  const std::string source = source_name(file);
  JobManifest manifest;
  auto job = the_job(documents, source, manifest.ignored);
  if (!job) return job.error();
  manifest.job = *std::move(job);
  if (const auto errors = validate_manifest(manifest.job); !errors.empty()) {
    return wrong(source, one_per_line(source, errors));
  }
  manifest.name = manifest.job["metadata"]["name"].get<std::string>();
  manifest.folder = file == "-" ? fs::current_path() : fs::absolute(file).parent_path();
  return manifest;
}

Result<void> check_runs_locally(const JobManifest& manifest, const std::string& file) {
  const auto job = job_from_json(manifest.job);
  if (!job) return job.error();
  const Json pod = make_pod(*job, {.worker_index = 0, .attempt = 0});
  std::string text;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : read::array_at(read::object_at(pod, "spec"), list)) {
      const auto process = local_process(pod, container, LocalFacts{});
      if (!process) text += (text.empty() ? "" : "\n" + file + ": ") + describe(process.error());
      if (&container == &main_container(pod)) break;  // locally a worker is its main container
    }
  }
  if (!text.empty()) return wrong(file, text);
  return {};
}

}  // namespace tj
