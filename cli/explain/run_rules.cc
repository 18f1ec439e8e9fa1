// What the operator made of a failure, and how the run itself is doing.
#include "cli/explain/rules.h"
#include "operator/plan/explain.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

using Seen = std::vector<Sighting>;

std::string job_text(const Evidence& evidence) { return "job " + evidence.job.meta.name; }

Seen see_failure(const Evidence& evidence, FailureCause cause) {
  const auto& failure = evidence.job.status.first_failure;
  if (!failure || failure->cause != cause) return {};
  return {{"attempt " + std::to_string(failure->attempt) + " of " + job_text(evidence),
           describe_first_failure(*failure), failure->finished_at}};
}

Seen failed_with(const Evidence& evidence, const char* reason) {
  const JobStatus& status = evidence.job.status;
  if (status.phase != Phase::failed || status.reason != reason) return {};
  return {{job_text(evidence), status.message, status.completion_time}};
}

/// The status says the failure and why it was the last: the failure has a finding of its own.
Seen exhausted(const Evidence& evidence) {
  auto seen = failed_with(evidence, reason::kRestartsExhausted);
  const auto& failure = evidence.job.status.first_failure;
  if (seen.empty() || !failure) return seen;
  const auto told = describe_first_failure(*failure) + "; ";
  if (seen.front().what.starts_with(told)) seen.front().what.erase(0, told.size());
  return seen;
}

/// The first failure has ended the job, and no budget was left or wanted.
Seen not_retried(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const bool is_told_otherwise =
      status.reason == reason::kRestartsExhausted || status.reason == reason::kDeadlineExceeded;
  if (status.phase != Phase::failed || !status.first_failure || is_told_otherwise) return {};
  const bool never = evidence.job.spec.run.max_restarts == 0;
  return {{job_text(evidence),
           never ? "it failed at once: runPolicy.maxRestarts is 0"
                 : "it failed at once: after such an end a restart would end the same way",
           status.completion_time}};
}

Seen restarted(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const auto& failure = status.first_failure;
  const bool is_it = failure && failure->attempt < status.attempt;
  if (!is_it) return {};
  const int of = evidence.job.spec.run.max_restarts;
  const bool has_begun = !status.attempt_start_time || *status.attempt_start_time <= evidence.now;
  std::string what = std::string("the gang ") + (has_begun ? "was" : "will be") +
                     " restarted as attempt " + std::to_string(status.attempt) + "; " +
                     std::to_string(status.restarts_counted) + " of " + std::to_string(of) +
                     " restarts are used";
  if (status.restarts_uncounted > 0)
    what += ", and " + std::to_string(status.restarts_uncounted) + " that do not count";
  return {{job_text(evidence), what, has_begun ? status.attempt_start_time : failure->finished_at}};
}

Seen waits_before_restart(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const auto& begins = status.attempt_start_time;
  const bool waits = begins && *begins > evidence.now && !is_terminal(status.phase);
  if (!waits) return {};
  return {{job_text(evidence), "the next attempt begins at " + format_time(*begins), std::nullopt}};
}

Seen changed(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const bool is_it =
      status.reason == reason::kSpecChanged || status.reason == reason::kNodesReadmitted;
  if (!is_it) return {};
  return {{job_text(evidence), status.message, status.attempt_start_time}};
}

/// Progress that stands still, of a job that has not asked for hangs to be found.
Seen no_progress(const Evidence& evidence) {
  constexpr std::chrono::minutes kLong{10};
  const JobStatus& status = evidence.job.status;
  const bool is_watched = evidence.job.spec.run.heartbeat_timeout.has_value();
  const auto& progress = status.progress;
  const bool stands = status.phase == Phase::running && !is_watched && progress &&
                      progress->attempt == status.attempt && progress->updated_at &&
                      evidence.now >= *progress->updated_at + kLong;
  if (!stands) return {};
  return {{job_text(evidence),
           "its progress has not changed since step " + std::to_string(progress->step) +
               (progress->phase.empty() ? "" : ", in phase " + progress->phase),
           progress->updated_at}};
}

}  // namespace

Rules run_rules() {
  return {
      {"Hung", Stage::failure,
       "tj logs {job} --first-failure shows what that worker did last; a limit too short for a "
       "long save or a slow start shows in the phase that is named "
       "(runPolicy.heartbeatTimeoutSeconds)",
       [](const Evidence& evidence) { return see_failure(evidence, FailureCause::hung); }},
      {"StartDeadlineExceeded", Stage::failure,
       "not all workers ran within runPolicy.startDeadlineSeconds: raise it, or remove what they "
       "waited for",
       [](const Evidence& evidence) {
         return see_failure(evidence, FailureCause::start_deadline);
       }},
      {"RestartsExhausted", Stage::verdict,
       "mend the cause above, or raise runPolicy.maxRestarts; then delete the job and submit it "
       "again: a trainer with --resume goes on from its last checkpoint",
       exhausted},
      {"DeadlineExceeded", Stage::verdict,
       "raise runPolicy.activeDeadlineSeconds; a run that resumes goes on from its last checkpoint",
       [](const Evidence& evidence) { return failed_with(evidence, reason::kDeadlineExceeded); }},
      {"NotRetried", Stage::verdict,
       "mend the cause above, then delete the job and submit it again: one that has ended stays so",
       not_retried},
      {"Restarted", Stage::verdict, "nothing, unless it happens again and again", restarted},
      {"WaitsBeforeRestart", Stage::verdict,
       "nothing: the wait doubles with each quick failure in a row "
       "(runPolicy.restartBackoffSeconds)",
       waits_before_restart},
      {"SpecChanged", Stage::verdict, "nothing: all workers begin anew with what was changed",
       changed},
      {"NoProgress", Stage::run,
       "tj logs {job} -f shows whether it works; runPolicy.heartbeatTimeoutSeconds has the "
       "operator restart a run that hangs",
       no_progress},
  };
}

}  // namespace tj
