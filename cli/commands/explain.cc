// tj explain: why a job is not starting, why it restarted, why it failed, and what to do.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/explain/gather.h"
#include "cli/explain/rules.h"
#include "cli/jobs/output.h"
#include "cli/jobs/place.h"
#include "cli/jobs/requests.h"
#include "cli/plain_text.h"

namespace tj {
namespace {

constexpr const char* kFooter = R"(
The causes are in the order in which one led to the other; each has the object, the time, and what
to do.

Examples:
  tj explain mnist
  tj explain mnist -o json
  tj explain mnist --local           a run of this machine

Exit codes: 0 the job was found and explained, whatever is wrong with it; 2 wrong input, 3 no such
job, 4 refused, 5 no answer.)";

struct ExplainArguments {
  PlaceOptions place;
  std::string job;
  std::string output = "text";
};

TimePoint now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// Line by line: what others wrote may hold what moves a cursor.
std::string for_terminal(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    plain += without_controls(std::string_view(text).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return plain;
}

int explain_job(const ExplainArguments& arguments) {
  const auto place = Place::open(arguments.place);
  if (!place) return fail(place.error());
  const auto name = job_name_of(arguments.job);
  if (!name) return fail(name.error());
  auto gathered = gather((*place)->session(), *name);
  if (!gathered) return fail(gathered.error());
  const auto evidence = read_evidence(gathered->gathered, now());
  if (!evidence) return fail(evidence.error());
  for (const std::string& missing : gathered->missing)
    std::fprintf(stderr, "tj: left out, as it can't be read: %s\n",
                 without_controls(missing).c_str());
  if ((*place)->is_local() && (*place)->has_lost_its_process(*name) &&
      !is_terminal(evidence->job.status.phase)) {
    std::fprintf(stderr, "tj: its tj run has ended; the job stays as it was last\n");
  }
  const auto findings = explain(*evidence);
  if (arguments.output == "json") {
    const auto replace = nlohmann::json::error_handler_t::replace;
    std::printf("%s\n", to_json(*evidence, findings).dump(2, ' ', false, replace).c_str());
  } else {
    std::fputs(for_terminal(to_text(*evidence, findings)).c_str(), stdout);
  }
  return tj_exit::kSucceeded;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "explain", "why a job is not starting, restarted or failed, and what to do");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("job", arguments->job, "the job's name")->required()->type_name("JOB");
  command->add_option("-o,--output", arguments->output, "text or json (text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORM");
  add_place_flags(*command, arguments->place);
  command->footer(kFooter);
  command->callback([arguments, &exit_code] { exit_code = explain_job(*arguments); });
}

}  // namespace tj
