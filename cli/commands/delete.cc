// tj delete: jobs and all that they own; of a local run its processes.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/change.h"
#include "cli/jobs/wait_for.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj delete mnist                    the job, its pods and its Service; waits until they are gone
  tj delete mnist cifar --no-wait    two jobs; does not wait
  tj delete mnist --local            ends its tj run, and lists it no more; its files stay

Nothing is asked before. Exit codes: 0 done, 2 wrong input, 3 no such job, 4 refused, 5 no
answer, 124 not gone within --timeout; of several jobs that of the first that failed.)";

struct Arguments {
  PlaceOptions place;
  DeleteOptions options;
  std::string timeout;
};

int run(Arguments& arguments) {
  if (!arguments.timeout.empty()) {
    const auto timeout = parse_duration(arguments.timeout);
    if (!timeout) return fail(timeout.error());
    arguments.options.timeout = *timeout;
  }
  const auto place = Place::open(arguments.place);
  return place ? delete_jobs(**place, arguments.options) : fail(place.error());
}

}  // namespace

void add_delete(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("delete", "delete jobs and all that they own");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("job", arguments->options.jobs, "their names")->required()->type_name("JOB");
  command->add_flag("--wait,!--no-wait", arguments->options.wait,
                    "until the jobs and their pods are gone (it does)");
  command->add_option("--timeout", arguments->timeout, "wait no longer (for ever)")
      ->type_name("TIME");
  add_output_flag(*command, arguments->options.output, "json|yaml|name");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
