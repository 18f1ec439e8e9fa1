// tj: run a TrainingJob on this machine, or check its manifest. One subcommand, one function.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/job_conversion.h"
#include "cli/local_run.h"
#include "cli/manifest_file.h"

namespace {

constexpr const char* kExamples = R"(
Examples:
  tj run -f job.yaml                  run a job as processes of this machine
  tj run -f job.yaml --out /tmp/job   put logs and volumes there, instead of out/<job>
  tj validate -f job.yaml             say what is wrong with a manifest, start nothing;
                                      of a Job (batch/v1): print the TrainingJob to write instead

Exit codes of run: 0 succeeded, 1 failed, 2 wrong input, 130 interrupted.
The trainer is looked for beside tj, then in PATH; TJ_TRAINER_PATH names its folder.)";

int fail(const tj::Error& error) {
  std::fprintf(stderr, "%s\n", tj::describe(error).c_str());
  return tj::tj_exit::kWrongInput;
}

int run(const std::string& file, const tj::LocalRunOptions& options) {
  const auto documents = tj::read_documents(file);
  if (!documents) return fail(documents.error());
  const auto manifest = tj::job_manifest(*documents, file);
  if (!manifest) return fail(manifest.error());
  if (const auto runs = tj::check_runs_locally(*manifest, file); !runs) return fail(runs.error());
  return tj::run_locally(*manifest, options);
}

/// Standard error says what is wrong, standard output holds the manifests to write in their place.
int answer_other_kinds(const std::string& source, const std::vector<tj::ConvertedJob>& jobs) {
  int printed = 0;
  for (const auto& job : jobs) {
    const bool is_made = job.errors.empty();
    std::fprintf(stderr, "%s: %s; %s\n", source.c_str(), job.complaint.c_str(),
                 is_made ? "what to write instead is on standard output"
                         : "it can't be made into one as it is:");
    for (const auto& error : job.errors)
      std::fprintf(stderr, "%s: %s\n", source.c_str(), tj::describe(error).c_str());
    if (is_made) std::printf("%s%s", printed++ == 0 ? "" : "---\n", tj::text_of(job).c_str());
  }
  return tj::tj_exit::kWrongInput;
}

int validate(const std::string& file) {
  const auto documents = tj::read_documents(file);
  if (!documents) return fail(documents.error());
  const std::string source = tj::source_name(file);
  if (const auto others = tj::convert_jobs(*documents); !others.empty())
    return answer_other_kinds(source, others);
  const auto manifest = tj::job_manifest(*documents, file);
  if (!manifest) return fail(manifest.error());
  std::printf("%s: TrainingJob %s is valid\n", source.c_str(), manifest->name.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tj runs a TrainingJob: training programs with ranks, described by one manifest.",
               "tj");
  app.footer(kExamples);
  app.set_version_flag("--version", "tj " TJ_VERSION);
  app.require_subcommand(1);

  std::string file;
  tj::LocalRunOptions options;
  int grace_seconds = -1;
  CLI::App* run_command = app.add_subcommand("run", "run a job as processes of this machine");
  run_command->add_option("-f,--file", file, "the manifest; - reads standard input")->required();
  run_command->add_option("--out", options.out, "folder of logs and volumes (out/<job>)");
  run_command->add_flag("--no-color", options.no_colour, "no colours, as with NO_COLOR=1");
  run_command
      ->add_option(
          "--grace", grace_seconds,
          "seconds from SIGTERM to SIGKILL (the template's terminationGracePeriodSeconds, or 30)")
      ->check(CLI::Range(0, 86400));
  CLI::App* validate_command = app.add_subcommand("validate", "check a manifest, start nothing");
  validate_command->add_option("-f,--file", file, "the manifest; - reads standard input")
      ->required();

  try {
    app.parse(argc, argv);
    if (grace_seconds >= 0) options.grace = std::chrono::seconds{grace_seconds};
    return run_command->parsed() ? run(file, options) : validate(file);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : tj::tj_exit::kWrongInput;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "tj: %s\n", failure.what());
    return tj::tj_exit::kFailed;
  }
}
