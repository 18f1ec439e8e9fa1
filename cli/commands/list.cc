// tj list: the jobs of a namespace, or of all, or the local runs.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/show.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj list                      the jobs of the context's namespace
  tj list -A -o wide           of all namespaces, with rates and messages
  tj list -l team=vision -w    those with a label, again and again
  tj list --local              the runs of tj run
  tj list -o name              one trainingjob.kubebrain.io/NAME a line, for scripts

Exit codes: 0 done, 2 wrong input, 4 refused, 5 no answer.)";

struct Arguments {
  PlaceOptions place;
  ListOptions options;
};

int run(const Arguments& arguments) {
  const auto place = Place::open(arguments.place);
  return place ? list(**place, arguments.options) : fail(place.error());
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("list", "the jobs, and how they are");
  auto arguments = std::make_shared<Arguments>();
  ListOptions& options = arguments->options;
  command->add_flag("-A,--all-namespaces", options.all_namespaces, "of all namespaces");
  command->add_option("-l,--selector", options.label_selector, "only those with these labels")
      ->type_name("LABELS");
  command->add_flag("-w,--watch", options.watch, "again and again, until Ctrl-C");
  add_output_flag(*command, options.output, "wide|json|yaml|name");
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace tj
