// tj top: the rates of a job and its ranks.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/show.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj top mnist

Rates are what rank 0 tells the operator, about every ten seconds. What is not known is said.

Exit codes: 0 done, 2 wrong input, 3 no such job, 4 refused, 5 no answer.)";

struct Arguments {
  PlaceOptions place;
  std::string job;
};

int run(const Arguments& arguments) {
  const auto place = Place::open(arguments.place);
  return place ? show_top(**place, arguments.job) : fail(place.error());
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("top", "one job's rates, rank by rank");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("job", arguments->job, "its name")->required()->type_name("JOB");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
