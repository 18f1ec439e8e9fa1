// tj run: a job as processes of this machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/local_run.h"
#include "cli/manifest_file.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj run -f job.yaml                  logs and volumes are in out/<job>
  tj run -f job.yaml --out /tmp/job   in another folder
  tj run -f - < job.yaml              from standard input

tj list --local, tj status, tj events and tj delete know the run while it lives and afterwards.

Exit codes: 0 succeeded, 1 failed, 2 wrong input, 130 interrupted, 143 asked to end.)";

struct RunArguments {
  std::string file;
  LocalRunOptions options;
  int grace_seconds = -1;
};

int run(RunArguments& arguments) {
  if (arguments.grace_seconds >= 0)
    arguments.options.grace = std::chrono::seconds{arguments.grace_seconds};
  const auto documents = read_documents(arguments.file);
  if (!documents) return refuse(documents.error());
  const auto manifest = job_manifest(*documents, arguments.file);
  if (!manifest) return refuse(manifest.error());
  if (const auto runs = check_runs_locally(*manifest, arguments.file); !runs)
    return refuse(runs.error());
  return run_locally(*manifest, arguments.options);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "run a job as processes of this machine");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("-f,--file", arguments->file, "the manifest; - reads standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", arguments->options.out, "folder of logs and volumes (out/<job>)")
      ->type_name("DIR");
  command->add_flag("--no-color", arguments->options.no_colour, "no colours, as with NO_COLOR=1");
  command
      ->add_option(
          "--grace", arguments->grace_seconds,
          "seconds from SIGTERM to SIGKILL (the template's terminationGracePeriodSeconds, or 30)")
      ->check(CLI::Range(0, 86400));
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
