// tj validate: what is wrong with a manifest; of a job of another kind, what to write instead.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_conversion.h"
#include "cli/manifest_file.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj validate -f job.yaml             say what is wrong, start nothing
  tj validate -f old.yaml > new.yaml  of a Job (batch/v1) or a PyTorchJob: the TrainingJob to write

Exit codes: 0 valid, 2 not valid, or another kind.)";

/// Standard error says what is wrong, standard output holds the manifests to write in their place.
int answer_other_kinds(const std::string& source, const std::vector<ConvertedJob>& jobs) {
  int printed = 0;
  for (const auto& job : jobs) {
    const bool is_made = job.errors.empty();
    std::fprintf(stderr, "%s: %s; %s\n", source.c_str(), job.complaint.c_str(),
                 is_made ? "what to write instead is on standard output"
                         : "it can't be made into one as it is:");
    for (const auto& error : job.errors)
      std::fprintf(stderr, "%s: %s\n", source.c_str(), describe(error).c_str());
    if (is_made) std::printf("%s%s", printed++ == 0 ? "" : "---\n", text_of(job).c_str());
  }
  return tj_exit::kWrongInput;
}

int validate(const std::string& file) {
  const auto documents = read_documents(file);
  if (!documents) return refuse(documents.error());
  const std::string source = source_name(file);
  if (const auto others = convert_jobs(*documents); !others.empty())
    return answer_other_kinds(source, others);
  const auto manifest = job_manifest(*documents, file);
  if (!manifest) return refuse(manifest.error());
  std::printf("%s: TrainingJob %s is valid\n", source.c_str(), manifest->name.c_str());
  return tj_exit::kSucceeded;
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("validate", "check a manifest, start nothing");
  auto file = std::make_shared<std::string>();
  command->add_option("-f,--file", *file, "the manifest; - reads standard input")
      ->required()
      ->type_name("FILE");
  command->footer(kExamples);
  command->callback([file, &exit_code] { exit_code = validate(*file); });
}

}  // namespace tj
