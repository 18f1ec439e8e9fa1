// tj events: what has happened to a job, its pods and its Service.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/show.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj events mnist              the oldest first
  tj events mnist -o json      for programs

A cluster keeps events for an hour unless it was told otherwise.

Exit codes: 0 done, 2 wrong input, 3 no such job, 4 refused, 5 no answer.)";

struct Arguments {
  PlaceOptions place;
  std::string job;
  Output output;
};

int run(const Arguments& arguments) {
  const auto place = Place::open(arguments.place);
  return place ? show_events(**place, arguments.job, arguments.output) : fail(place.error());
}

}  // namespace

void add_events(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("events", "what has happened to a job and its pods");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("job", arguments->job, "its name")->required()->type_name("JOB");
  add_output_flag(*command, arguments->output, "json|yaml|name");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
