// tj suspend, resume, restart and scale: commands that change one job and have the same flags.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/change.h"

namespace tj {
namespace {

struct Arguments {
  PlaceOptions place;
  std::string job;
  Output output;
  int worker_count = 0;
};

using Change = std::function<int(Place& place, const Arguments& arguments)>;

struct Words {
  const char* name = "";
  const char* description = "";
  const char* footer = "";
};

/// The command with the flags that all of them have; `change` is what it does.
CLI::App* add_change(CLI::App& app, int& exit_code, const Words& words,
                     const std::shared_ptr<Arguments>& arguments, Change change) {
  CLI::App* command = app.add_subcommand(words.name, words.description);
  command->add_option("job", arguments->job, "its name")->required()->type_name("JOB");
  add_output_flag(*command, arguments->output, "json|yaml|name");
  add_place_flags(*command, arguments->place);
  command->footer(words.footer);
  command->callback([arguments, change = std::move(change), &exit_code] {
    const auto place = Place::open(arguments->place);
    exit_code = place ? change(**place, *arguments) : fail(place.error());
  });
  return command;
}

}  // namespace

void add_suspend(CLI::App& app, int& exit_code) {
  add_change(app, exit_code,
             {"suspend", "stop a job's workers, which may save a checkpoint first", R"(
Examples:
  tj suspend mnist                                  asks, and does not wait
  tj wait mnist --for phase=Suspended --timeout 5m  until no worker runs any more
  tj resume mnist

Exit codes: 0 done (or it was suspended before), 1 the job has ended, 2 wrong input,
3 no such job, 4 refused, 5 no answer.)"},
             std::make_shared<Arguments>(), [](Place& place, const Arguments& arguments) {
               return set_suspended(place, arguments.job, true, arguments.output);
             });
}

void add_resume(CLI::App& app, int& exit_code) {
  add_change(app, exit_code, {"resume", "let a suspended job go on, as a new attempt", R"(
Examples:
  tj resume mnist

Exit codes: 0 done (or it was not suspended), 1 the job has ended, 2 wrong input,
3 no such job, 4 refused, 5 no answer.)"},
             std::make_shared<Arguments>(), [](Place& place, const Arguments& arguments) {
               return set_suspended(place, arguments.job, false, arguments.output);
             });
}

void add_restart(CLI::App& app, int& exit_code) {
  add_change(app, exit_code,
             {"restart", "begin a new attempt of all workers; it counts as no failure", R"(
Examples:
  tj restart mnist             workers are asked to end, as by suspend, and begin anew

The job is suspended and resumed in two updates, of which the first writes the annotation
kubebrain.io/restarted-at into the template. Nothing counts against maxRestarts.

Exit codes: 0 done, 1 the job has ended or is suspended, 2 wrong input, 3 no such job,
4 refused, 5 no answer.)"},
             std::make_shared<Arguments>(), [](Place& place, const Arguments& arguments) {
               return restart_job(place, arguments.job, arguments.output);
             });
}

void add_scale(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      add_change(app, exit_code, {"scale", "another number of workers, as a new attempt", R"(
Examples:
  tj scale mnist --workers 4   WORLD_SIZE is 4 from the next attempt on, which begins now

Exit codes: 0 done, 1 the job has ended, 2 wrong input, 3 no such job, 4 refused,
5 no answer.)"},
                 arguments, [](Place& place, const Arguments& given) {
                   return scale_job(place, given.job, given.worker_count, given.output);
                 });
  command->add_option("--workers,--replicas", arguments->worker_count, "how many, 1 to 10000")
      ->required()
      ->check(CLI::Range(1, 10000))
      ->type_name("N");
}

}  // namespace tj
