// tj logs: the output of all workers of a job, or of some.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/output.h"
#include "cli/jobs/place.h"
#include "cli/jobs/requests.h"
#include "cli/line_printer.h"
#include "cli/logs/job_logs.h"
#include "cli/logs/local_logs.h"
#include "operator/api/json.h"

namespace tj {
namespace {

constexpr const char* kFooter = R"(
Each line has its rank before it; what many ranks say alike within 0.3 s is one line: [0-15] ...
Standard output has the lines alone; what tj says itself is on standard error.

Examples:
  tj logs mnist                      all that the workers have written
  tj logs mnist -f --rank 0,7-9      these workers, until the job has ended
  tj logs mnist --first-failure      the end of what failed first

Exit codes: 0 all was read, 1 not all could be read, 2 wrong input, 3 no such job or log,
4 refused, 5 no answer.)";

struct LogsArguments {
  PlaceOptions place;
  LogsOptions options;
  std::string ranks;
  std::string since;
  std::int64_t tail_lines = -1;
  int attempt = -1;
  bool timestamps = false;
  bool no_fold = false;
  bool no_colour = false;
};

Error wrong(const char* flag, const std::string& message) {
  return {Code::invalid, message, flag, {}};
}

Result<LogsOptions> options_of(const LogsArguments& arguments) {
  LogsOptions options = arguments.options;
  auto name = job_name_of(options.job);
  if (!name) return name.error();
  options.job = *std::move(name);
  if (!arguments.ranks.empty()) {
    auto ranks = parse_ranks(arguments.ranks);
    if (!ranks) return ranks.error();
    options.selection.ranks = *std::move(ranks);
  }
  if (!arguments.since.empty()) {
    options.since = parse_age(arguments.since);
    if (!options.since)
      return wrong("--since",
                   "\"" + arguments.since + "\" is no duration; it must be like 90s, 5m or 1h30m");
  }
  if (arguments.tail_lines >= 0) options.tail_lines = arguments.tail_lines;
  if (arguments.attempt >= 0) options.selection.attempt = arguments.attempt;
  if (options.follow && options.previous)
    return wrong("--previous", "what has ended can't be followed; leave out -f or --previous");
  if (options.first_failure && (options.follow || options.previous || options.selection.ranks))
    return wrong("--first-failure",
                 "it chooses rank and attempt itself; leave out -f, --previous and --rank");
  return options;
}

int exit_code_of(const Result<bool>& shown) {
  if (shown) return *shown ? tj_exit::kSucceeded : tj_exit::kFailed;
  return fail(shown.error());
}

Result<bool> show_local_logs(Place& place, const LogsArguments& arguments, LogsOptions options,
                             LogPrinter& printer) {
  if (options.since || arguments.timestamps) {
    return wrong(options.since ? "--since" : "--timestamps",
                 "the logs of a local run have no times; leave it out");
  }
  const RunEntry* run = place.run_of(options.job);
  if (run == nullptr)
    return Error{Code::not_found, "there is no local run of this name", options.job, {}};
  if (options.first_failure) {
    const auto object = place.session().call({.verb = Verb::get,
                                              .resource = Resource::training_jobs,
                                              .ns = place.ns(),
                                              .name = options.job});
    if (!object) return object.error();
    const auto job = job_from_json(*object);
    if (!job) return job.error();
    auto chosen = of_first_failure(*job, std::move(options));
    if (!chosen) return chosen.error();
    options = *std::move(chosen);
    printer.note(first_failure_note(*job->status.first_failure));
  }
  const auto shown = LocalLogs(*run, options, printer).run();
  if (!shown) return shown.error();
  return true;
}

int logs(const LogsArguments& arguments) {
  const auto options = options_of(arguments);
  if (!options) return fail(options.error());
  const auto place = Place::open(arguments.place);
  if (!place) return fail(place.error());
  FoldBounds fold;
  if (arguments.no_fold) fold.delay = std::chrono::milliseconds{0};
  LogPrinter printer({},
                     {.colour = wants_colour(STDOUT_FILENO, arguments.no_colour),
                      .timestamps = arguments.timestamps,
                      .for_terminal = isatty(STDOUT_FILENO) == 1},
                     fold);
  return exit_code_of((*place)->is_local() ? show_local_logs(**place, arguments, *options, printer)
                                           : show_job_logs((*place)->session(), *options, printer));
}

void add_choice_flags(CLI::App& command, LogsArguments& arguments) {
  command.add_option("job", arguments.options.job, "the job's name")->required()->type_name("JOB");
  command.add_option("--rank", arguments.ranks, "of these ranks alone, as 0,7-9 (all)")
      ->type_name("RANKS");
  command.add_flag("--first-failure", arguments.options.first_failure,
                   "the last lines of the worker that failed first");
  command.add_option("--attempt", arguments.attempt, "of this attempt alone (all that have pods)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N");
  command
      .add_option("-c,--container", arguments.options.selection.container,
                  "of another container of the workers (the main one)")
      ->type_name("NAME");
  command.add_flag("--previous", arguments.options.previous,
                   "of the container before its last restart; of a local run: the run before");
}

void add_output_flags(CLI::App& command, LogsArguments& arguments) {
  command.add_flag("-f,--follow", arguments.options.follow,
                   "go on until the job has ended, across restarts");
  command.add_option("--since", arguments.since, "only what is younger, as 90s, 5m, 1h30m")
      ->type_name("AGE");
  command.add_option("--tail", arguments.tail_lines, "only the last lines of each rank (all)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command.add_flag("--timestamps", arguments.timestamps, "the time of each line before it");
  command.add_flag("--no-fold", arguments.no_fold, "equal lines of many ranks stay many");
  command.add_flag("--no-color", arguments.no_colour, "no colours, as with NO_COLOR=1");
}

}  // namespace

void add_logs(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("logs", "the output of a job's workers, all at once");
  auto arguments = std::make_shared<LogsArguments>();
  add_choice_flags(*command, *arguments);
  add_output_flags(*command, *arguments);
  add_place_flags(*command, arguments->place);
  command->footer(kFooter);
  command->callback([arguments, &exit_code] { exit_code = logs(*arguments); });
}

}  // namespace tj
