// tj check: whether a job could train where it is, by `trainer check` in its place.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/check/check_job.h"
#include "cli/check/check_run.h"
#include "cli/cluster/session.h"
#include "cli/command_words.h"
#include "cli/commands/commands.h"
#include "cli/manifest_file.h"
#include "cli/submit/output.h"
#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/api/validate.h"

namespace tj {
namespace {

using namespace check;
using Json = nlohmann::json;

constexpr int kTimeoutSecondsMax = 86'400;
/// In which an operator that is there has ended a check by its deadline.
constexpr std::chrono::seconds kOperatorMargin{60};
constexpr const char* kNotes = R"(
A job JOB-check is created with the image, volumes, network and nodes of the job, runs `trainer
check` on each worker, and is deleted at the end, also after Ctrl-C. Words behind -- are arguments of
`trainer check`; without them those of the job's own `trainer train` are taken.

Examples:
  tj check taehv-16gpu -- --data /mnt/project/videos --out /mnt/project/out
  tj check -f job.yaml --image trainingjob/trainer:0.1.0

Exit codes: 0 training can begin, 1 it can't, or the check failed, 2 wrong input, 3 no such job,
4 refused, 5 no answer, 130 interrupted.)";

struct CheckArguments {
  SessionOptions session;
  std::string job;
  std::string file;
  std::string image;
  int timeout_seconds = 300;
  bool is_dry_run = false;
  std::vector<std::string> words;
};

void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::string image_of(const Json& check_job) {
  const Json& worker = read::object_at(
      read::object_at(read::object_at(check_job, "spec"), "replicaSpecs"), "Worker");
  return read::string_at(main_container(read::object_at(worker, "template")), "image");
}

Result<CheckJob> make(const CheckArguments& arguments, const Json& job, const Place& place) {
  CheckJob made = make_check_job(job, place,
                                 {.image = arguments.image,
                                  .arguments = arguments.words,
                                  .timeout = std::chrono::seconds(arguments.timeout_seconds)});
  const auto errors = validate_manifest(made.job);
  if (errors.empty()) return made;
  return Error{Code::invalid, describe(errors), "the check's job", {}};
}

Result<CheckJob> for_file(const CheckArguments& arguments) {
  const auto documents = read_documents(arguments.file);
  if (!documents) return documents.error();
  const auto manifest = job_manifest(*documents, arguments.file);
  if (!manifest) return manifest.error();
  return make(arguments, manifest->job, {});
}

Result<CheckJob> for_job(const CheckArguments& arguments, Session& session) {
  const ObjectKey key{session.ns(), arguments.job};
  const auto job = session.call(
      {.verb = Verb::get, .resource = Resource::training_jobs, .ns = key.ns, .name = key.name});
  if (!job) return job.error();
  const auto pods = pods_of(session, key);
  if (!pods) return pods.error();
  return make(arguments, *job, place_of(*pods, meta_from_json(*job).uid));
}

int show(const CheckJob& made) {
  std::fputs(submit::printed({made.job}, submit::Format::yaml).c_str(), stdout);
  return tj_exit::kSucceeded;
}

int run(const CheckJob& made, Session& session, std::chrono::seconds timeout) {
  const submit::Interrupts interrupts(session.loop());
  const auto results =
      run_check({.session = session,
                 .interrupts = interrupts,
                 .read_log = [&session](const ObjectKey& pod) { return read_log(session, pod); },
                 .print = say,
                 .limit = timeout + kOperatorMargin},
                made.job);
  if (interrupts.number()) return interrupts.exit_code();
  if (!results) return refuse_or_fail(results.error());
  std::fputs(report_text(*results, image_of(made.job)).c_str(), stdout);
  return std::ranges::all_of(*results, has_passed) ? tj_exit::kSucceeded : tj_exit::kFailed;
}

int check_job(CheckArguments& arguments) {
  const bool is_of_file = !arguments.file.empty();
  // The first word behind -- is taken for the job where -f stands in its place.
  if (is_of_file && !arguments.job.empty())
    arguments.words.insert(arguments.words.begin(), std::exchange(arguments.job, ""));
  if (!is_of_file && arguments.job.empty()) {
    return refuse_or_fail({Code::invalid,
                           "names no job; it must be tj check JOB, or tj check -f job.yaml",
                           "tj check",
                           {}});
  }
  auto made = is_of_file ? for_file(arguments) : Result<CheckJob>(CheckJob{});
  if (!made) return refuse_or_fail(made.error());
  if (is_of_file && arguments.is_dry_run) return show(*made);
  const auto session = Session::open(arguments.session);
  if (!session) return refuse(session.error());
  if (!is_of_file) made = for_job(arguments, **session);
  if (!made) return refuse_or_fail(made.error());
  for (const std::string& note : made->notes) say("note: " + note);
  return arguments.is_dry_run
             ? show(*made)
             : run(*made, **session, std::chrono::seconds(arguments.timeout_seconds));
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", "whether a job could train where it is");
  auto arguments = std::make_shared<CheckArguments>();
  command->add_option("job", arguments->job, "the job")->type_name("JOB");
  command->add_option("-f,--file", arguments->file, "a manifest instead; - reads standard input");
  command->add_option("--image", arguments->image, "an image with the program trainer (the job's)")
      ->type_name("IMAGE");
  command
      ->add_option("--timeout", arguments->timeout_seconds,
                   "seconds until it is given up, waiting for nodes included")
      ->check(CLI::Range(1, kTimeoutSecondsMax))
      ->capture_default_str();
  command->add_flag("--dry-run", arguments->is_dry_run,
                    "print the check's manifest, create nothing");
  add_session_flags(*command, arguments->session);
  add_command_words(*command, arguments->words, "-- ARGUMENTS...");
  command->footer(kNotes);
  command->callback([arguments, &exit_code] { exit_code = check_job(*arguments); });
}

}  // namespace tj
