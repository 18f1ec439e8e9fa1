#include "operator/plan/backoff.h"

#include <algorithm>

#include "operator/plan/explain.h"
#include "operator/plan/progress.h"

namespace tj {
namespace {

using std::chrono::seconds;

bool has_run_steadily(const JobStatus& status, const FirstFailure& failure, TimePoint now) {
  const TimePoint ended = std::min(failure.finished_at.value_or(now), now);
  return status.running_time && ended >= *status.running_time + kSteadyRun;
}

/// A disruption is told by what happened, not by what a rule makes of it; the first in a row is
/// free of a wait.
seconds wait_after(int quick_restarts, bool is_disruption, seconds first_wait) {
  const int waits = quick_restarts - (is_disruption ? 1 : 0);
  if (waits <= 0) return seconds{0};
  seconds wait = first_wait;
  for (int i = 1; i < waits && wait < kBackoffMax; ++i) wait *= 2;
  return std::min(wait, kBackoffMax);
}

}  // namespace

void set_backoff(JobStatus& status, const Observed& observed, const FirstFailure& failure) {
  const auto step = reached_step(status);
  const bool has_come_further = step && *step > status.furthest_step.value_or(0);
  const bool was_quick = !has_come_further && !has_run_steadily(status, failure, observed.now);
  status.furthest_step = std::max(status.furthest_step, step);
  status.quick_restarts = was_quick ? status.quick_restarts + 1 : 0;
  const seconds wait = wait_after(status.quick_restarts, is_disruption(failure),
                                  observed.job.spec.run.restart_backoff);
  status.attempt_start_time = observed.now;
  if (wait.count() == 0) return;
  // Whole seconds, as a status keeps them: whoever reads it again waits no less.
  status.attempt_start_time = std::chrono::ceil<seconds>(observed.now) + wait;
  status.message += "; attempt " + std::to_string(status.attempt) + " begins in " +
                    std::to_string(wait.count()) + " s, at " +
                    clock_text(*status.attempt_start_time);
}

std::optional<TimePoint> find_backoff(const TrainingJob& job, TimePoint now) {
  const auto& begins = job.status.attempt_start_time;
  // A time that is further away is of another operator's clock.
  const auto latest = std::chrono::ceil<seconds>(now) + kBackoffMax;
  const bool waits = job.status.quick_restarts > 0 && begins && now < *begins && *begins <= latest;
  return waits ? begins : std::nullopt;
}

}  // namespace tj
