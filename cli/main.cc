// tj: TrainingJobs from the command line. Each subcommand is a file in commands/.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/completion/complete.h"
#include "cli/jobs/requests.h"
#include "cli/plain_text.h"

namespace {

constexpr const char* kExamples = R"(
Examples:
  tj run -f job.yaml                  run a job as processes of this machine
  tj run -f job.yaml --out /tmp/job   put logs and volumes there, instead of out/<job>
  tj logs mnist -f                    the output of all workers, until the job has ended
  tj explain mnist                    why it is not starting, restarted or failed
  tj validate -f job.yaml             say what is wrong with a manifest, start nothing;
                                      of a Job (batch/v1): print the TrainingJob to write instead
  tj submit --name a --image i -- cmd create a job in a cluster
  tj ui                               a page in the browser: jobs, curves, restarts, logs
  tj ui --local                       the same of the runs of this machine
  tj list                             the jobs of a cluster; of this machine where none is
                                      configured, or with --local
  tj status NAME --watch              one job, live, until it has ended
  tj COMMAND --help                   flags, examples and exit codes of each

Exit codes of run: 0 succeeded, 1 failed, 2 wrong input, 130 interrupted.
Of the commands that ask: 0 done, 1 the job has failed, or can't be changed any more, 2 wrong
input, 3 no such job, 4 refused (a right is missing), 5 no answer, 124 --timeout is over.
The trainer is looked for beside tj, then in PATH; TJ_TRAINER_PATH names its folder.)";

using AddCommand = void (*)(CLI::App& app, int& exit_code);

/// In the order of the help.
constexpr AddCommand kCommands[] = {
    tj::add_submit,       tj::add_run,     tj::add_validate, tj::add_check,   tj::add_launch,
    tj::add_slurm,        tj::add_convert, tj::add_list,     tj::add_status,  tj::add_top,
    tj::add_logs,         tj::add_explain, tj::add_events,   tj::add_suspend, tj::add_resume,
    tj::add_restart,      tj::add_scale,   tj::add_delete,   tj::add_wait,    tj::add_exec,
    tj::add_port_forward, tj::add_cp,      tj::add_ui,       tj::add_serve,   tj::add_completion,
    tj::add_man,
};

/// `kubectl tj` runs kubectl-tj: it is called what the person has written.
std::string program_name(const char* argv0) {
  const std::string path = argv0 == nullptr ? "" : argv0;
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.starts_with("kubectl-tj") ? "kubectl tj" : "tj";
}

/// CLI11 says of a wrong word only that a right one is missing. Absent: that is not what is wrong.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word.starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return {};
  const std::string meant = tj::did_you_mean(word, names);
  return "there is no command " + tj::plain_line(word) + (meant.empty() ? ";" : meant) +
         " tj --help lists all of them";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tj runs a TrainingJob: training programs with ranks, described by one manifest.",
               program_name(argc > 0 ? argv[0] : nullptr));
  app.footer(kExamples);
  app.set_version_flag("--version", "tj " TJ_VERSION);
  app.require_subcommand(1);
  int exit_code = tj::tj_exit::kSucceeded;
  for (const AddCommand add : kCommands) add(app, exit_code);
  try {
    if (const auto answered = tj::answer_completion(app, argc, argv)) return *answered;
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& wrong) {
    if (const auto unknown = unknown_command(app, argc, argv)) {
      std::fprintf(stderr, "tj: %s\n", unknown->c_str());
      return tj::tj_exit::kWrongInput;
    }
    return app.exit(wrong) == 0 ? 0 : tj::tj_exit::kWrongInput;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "tj: %s\n", failure.what());
    return tj::tj_exit::kFailed;
  }
}
