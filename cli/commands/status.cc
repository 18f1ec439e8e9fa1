// tj status: all there is to say about one job; with --watch until it has ended.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/show.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj status mnist              phase, ranks, nodes, progress, failures
  tj status mnist --watch      a live table; ends with the job
  tj status mnist -w | cat     without a terminal: a line for each change
  tj status mnist -o yaml      the object as the server has it

Exit codes: 0 done; with --watch: 0 the job has succeeded, 1 it has failed or its
tj run has ended before it. 2 wrong input, 3 no such job, 4 refused, 5 no answer.)";

struct Arguments {
  PlaceOptions place;
  StatusOptions options;
};

int run(const Arguments& arguments) {
  const auto place = Place::open(arguments.place);
  return place ? show_status(**place, arguments.options) : fail(place.error());
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "one job: phase, ranks, progress, failures");
  auto arguments = std::make_shared<Arguments>();
  StatusOptions& options = arguments->options;
  command->add_option("job", options.job, "its name")->required()->type_name("JOB");
  command->add_flag("-w,--watch", options.watch, "again and again, until the job has ended");
  add_output_flag(*command, options.output, "json|yaml|name");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
