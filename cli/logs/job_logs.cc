#include "cli/logs/job_logs.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/jobs/requests.h"
#include "cli/logs/follow_logs.h"
#include "cli/logs/read_logs.h"
#include "cli/run_report.h"
#include "operator/api/json.h"
#include "operator/plan/explain.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

using nlohmann::json;

Result<TrainingJob> read_job(Session& session, const std::string& name) {
  const auto object = get_job(session, name);
  if (!object) return object.error();
  return job_from_json(*object);
}

Result<std::vector<json>> list_pods(Session& session, const std::string& job) {
  return session.list({.verb = Verb::list,
                       .resource = Resource::pods,
                       .ns = session.ns(),
                       .label_selector = job_selector(job)});
}

/// Why there is no log for this choice.
Error nothing_to_show(const TrainingJob& job, const LogSelection& selection) {
  std::string message;
  if (selection.attempt && *selection.attempt != job.status.attempt) {
    message = "attempt " + std::to_string(*selection.attempt) +
              " has no pods any more, and their logs went with them; the job is in attempt " +
              std::to_string(job.status.attempt);
  } else {
    message = "no worker of this choice has a log yet";
  }
  if (!job.status.reason.empty()) message += " (" + status_line(job) + ")";
  return {Code::not_found, message, job.meta.name, {}};
}

/// Of ranks that were asked for and have not begun.
void say_who_is_missing(const std::vector<LogTarget>& targets, LogPrinter& printer) {
  RankSet missing;
  for (const LogTarget& target : targets) {
    if (!target.has_started) missing.insert(target.rank);
  }
  if (missing.empty()) return;
  printer.note("tj: no log yet of worker" + std::string(missing.size() > 1 ? "s " : " ") +
               missing.text() + "; tj explain says why");
}

Result<bool> read_now(Session& session, const TrainingJob& job, const LogsOptions& options,
                      LogPrinter& printer) {
  const auto pods = list_pods(session, options.job);
  if (!pods) return pods.error();
  if (const auto known = check_container(*pods, options.selection.container); !known)
    return known.error();
  const auto targets = log_targets(*pods, options.selection);
  std::vector<LogTarget> started;
  for (const LogTarget& target : targets) {
    if (target.has_started) started.push_back(target);
  }
  if (started.empty() && options.first_failure && job.status.first_failure) {
    print_last_words(*job.status.first_failure, printer);
    return true;
  }
  if (started.empty()) return nothing_to_show(job, options.selection);
  say_who_is_missing(targets, printer);
  return ReadLogs(session, options, printer).run(started);
}

}  // namespace

Result<LogsOptions> of_first_failure(const TrainingJob& job, LogsOptions options) {
  const auto& failure = job.status.first_failure;
  if (!failure) return Error{Code::not_found, "no worker of it has failed", job.meta.name, {}};
  options.selection.ranks.emplace().insert(failure->rank);
  options.selection.attempt = failure->attempt;
  if (!options.tail_lines) options.tail_lines = kLastWordsLines;
  return options;
}

std::string first_failure_note(const FirstFailure& failure) {
  std::string note = "attempt " + std::to_string(failure.attempt);
  if (failure.finished_at) note += ", " + format_time(*failure.finished_at);
  return note + ": " + describe_first_failure(failure);
}

void print_last_words(const FirstFailure& failure, LogPrinter& printer) {
  printer.note("tj: the pod of that worker is gone, and its log with it; its last words are:");
  std::string_view rest = failure.message;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    printer.folder().add(failure.rank, LogTime{}, rest.substr(0, end), LogTime{});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  printer.folder().flush();
  (void)printer.flush();
}

Result<bool> show_job_logs(Session& session, LogsOptions options, LogPrinter& printer) {
  const auto job = read_job(session, options.job);
  if (!job) return job.error();
  if (options.first_failure) {
    auto chosen = of_first_failure(*job, std::move(options));
    if (!chosen) return chosen.error();
    options = *std::move(chosen);
    printer.note(first_failure_note(*job->status.first_failure));
  }
  if (!options.follow) return read_now(session, *job, options, printer);
  return FollowLogs(session, options, printer).run();
}

}  // namespace tj
