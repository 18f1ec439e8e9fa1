// tj wait: until a job has ended, is in a phase, has a condition or is gone.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/wait_for.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj wait mnist                                    until it has ended
  tj wait mnist --for phase=Running --timeout 10m  until all workers have started
  tj wait mnist --for condition=Suspended
  tj wait mnist --for delete --timeout 60

A job that has succeeded counts as one that has run.

Exit codes: 0 it is so (without --for: the job has succeeded), 1 it can't be any more,
2 wrong input, 3 no such job, 4 refused, 5 no answer, 124 not within --timeout.)";

struct Arguments {
  PlaceOptions place;
  WaitOptions options;
  std::string goal;
  std::string timeout;
};

int run(Arguments& arguments) {
  const auto goal = parse_wait_goal(arguments.goal);
  if (!goal) return fail(goal.error());
  arguments.options.goal = *goal;
  if (!arguments.timeout.empty()) {
    const auto timeout = parse_duration(arguments.timeout);
    if (!timeout) return fail(timeout.error());
    arguments.options.timeout = *timeout;
  }
  const auto place = Place::open(arguments.place);
  return place ? wait_for(**place, arguments.options) : fail(place.error());
}

}  // namespace

void add_wait(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("wait", "wait for a job");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("job", arguments->options.job, "its name")->required()->type_name("JOB");
  command
      ->add_option("--for", arguments->goal,
                   "phase=PHASE, condition=TYPE[=True|False] or delete (its end)")
      ->type_name("GOAL");
  command->add_option("--timeout", arguments->timeout, "90, 90s, 5m, 1h30m (for ever)")
      ->type_name("TIME");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
