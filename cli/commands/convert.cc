// tj convert: manifests of other kinds as TrainingJobs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_conversion.h"
#include "cli/manifest_file.h"
#include "cli/plain_text.h"
#include "cli/submit/output.h"
#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using submit::Format;
using Json = nlohmann::json;

constexpr const char* kNotes = R"(
Reads PyTorchJob (kubeflow.org/v1), TrainJob (trainer.kubeflow.org/v1alpha1), JobSet
(jobset.x-k8s.io/v1alpha2), LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) and Job (batch/v1), all
of a file and of its Lists. What is left out, or means something else now, is said on standard
error and, in YAML, in comments above the manifest.

Examples:
  tj convert -f pytorchjob.yaml > job.yaml
  kubectl get pytorchjob mnist -o yaml | tj convert -f - | tj submit -f -

Exit codes: 0 all jobs are converted, 2 one is not, or there is none.)";

struct Conversion {
  std::string source;
  std::vector<ConvertedJob> jobs;
  int failed = 0;

  void say(const std::string& text) const {
    std::fprintf(stderr, "%s: %s\n", source.c_str(), plain_line(text).c_str());
  }

  void take(const Json& object) {
    const std::string kind = read::string_at(object, "kind");
    const std::string name = meta_from_json(object).name;
    auto job = convert_job(object);
    if (!job) {
      const std::string what = kind.empty() ? "an object without kind" : kind + " " + name;
      return say(what + (kind == names::kKind ? " is one already, and left out"
                                              : " is no job of another kind, and left out"));
    }
    for (const std::string& note : job->notes) say(kind + " " + name + ": " + note);
    for (const FieldError& error : job->errors) say(kind + " " + name + ": " + describe(error));
    if (job->errors.empty()) {
      jobs.push_back(*std::move(job));
    } else {
      ++failed;
    }
  }
};

std::string text_of(const Conversion& conversion, Format format) {
  std::string text;
  std::vector<Json> manifests;
  for (const ConvertedJob& job : conversion.jobs) {
    text += (text.empty() ? "" : "---\n") + text_of(job);
    manifests.push_back(job.manifest);
  }
  if (format == Format::yaml || manifests.empty()) return text;
  return submit::printed(manifests, format);
}

int convert(const std::string& file, const std::string& format_text) {
  const auto format = submit::parse_format(format_text);
  if (!format) return refuse(format.error());
  const auto documents = read_documents(file);
  if (!documents) return refuse(documents.error());
  Conversion conversion{.source = source_name(file), .jobs = {}};
  for (const Json& document : *documents) {
    const bool is_list = read::string_at(document, "kind") == "List";
    if (!is_list) conversion.take(document);
    if (is_list)
      for (const Json& item : read::array_at(document, "items")) conversion.take(item);
  }
  std::fputs(text_of(conversion, *format).c_str(), stdout);
  if (conversion.jobs.empty() && conversion.failed == 0)
    conversion.say("there is no job to convert; see tj convert --help");
  const bool is_done = conversion.failed == 0 && !conversion.jobs.empty();
  return is_done ? tj_exit::kSucceeded : tj_exit::kWrongInput;
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("convert", "manifests of other kinds as TrainingJobs");
  struct Arguments {
    std::string file;
    std::string format = "yaml";
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("-f,--file", arguments->file, "the manifest; - reads standard input")
      ->required();
  command->add_option("-o,--output", arguments->format, "yaml, json or name")
      ->type_name("FORMAT")
      ->capture_default_str();
  command->footer(kNotes);
  command->callback(
      [arguments, &exit_code] { exit_code = convert(arguments->file, arguments->format); });
}

}  // namespace tj
