#include "operator/loop/status_pace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/status_json.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

JobStatus without_what_moves(JobStatus status) {
  status.message.clear();
  status.ready_text.clear();
  status.workers = {.desired = status.workers.desired};
  status.troubled_ranks.clear();
  status.succeeded_ranks.clear();
  status.progress.reset();
  status.last_checkpoint.reset();
  for (Condition& condition : status.conditions) condition.message.clear();
  return status;
}

bool is_coming_up(const JobStatus& before, const JobStatus& after) {
  const bool is_on_its_way =
      after.reason == reason::kCreatingWorkers || after.reason == reason::kWaitingForWorkers;
  return is_on_its_way && (before.reason.empty() || before.reason == reason::kCreatingWorkers ||
                           before.phase == Phase::restarting);
}

}  // namespace

bool is_same_status(const JobStatus& left, const JobStatus& right) {
  return left == right || to_json(left) == to_json(right);
}

StatusChange change_between(const JobStatus& before, const JobStatus& after, bool has_consequence) {
  if (is_same_status(before, after)) return StatusChange::none;
  if (!(without_what_moves(before) == without_what_moves(after))) {
    if (has_consequence) return StatusChange::verdict;
    return is_coming_up(before, after) ? StatusChange::coming_up : StatusChange::phase;
  }
  // Who counts on the machines being free again waits for the last of them.
  const bool is_empty_now = before.workers.active > 0 && after.workers.active == 0;
  if (is_empty_now) return StatusChange::phase;
  if (before.succeeded_ranks != after.succeeded_ranks) return StatusChange::success;
  const bool has_moved =
      before.progress != after.progress || before.last_checkpoint != after.last_checkpoint;
  return has_moved ? StatusChange::progress : StatusChange::counts;
}

/// Scheduler and kubelets take about half as long again as the creation of many workers took.
bool StatusPace::is_busy(SteadyTime now) {
  const auto creating_since = creating_since_();
  if (!creating_since) return now < busy_until_;
  if (*creating_since > busy_until_) busy_since_ = *creating_since;
  busy_until_ = now + (now - busy_since_) / 2;
  return true;
}

std::chrono::milliseconds StatusPace::wait(Job& job, StatusChange change, SteadyTime now) {
  if (change == StatusChange::verdict) return {};
  if (change == StatusChange::none) {
    job.changed_since.reset();
    job.turn.reset();
    return {};
  }
  if (!job.changed_since) job.changed_since = now;
  SteadyTime due = now;
  if (job.written && change == StatusChange::counts) due = *job.written + job.interval;
  if (job.written && change == StatusChange::success) due = *job.written + kSuccessInterval;
  if (change == StatusChange::coming_up) due = *job.changed_since + kComingUpMax;
  if (is_busy(now)) {
    due = std::max(due, std::min(now + kLookAgain, *job.changed_since + kBehindCreationsMax));
  }
  if (due > now) {
    job.turn.reset();
  } else {
    if (!job.turn) {
      job.turn = std::max(now, next_turn_);
      next_turn_ = *job.turn + kTurn;
    }
    due = *job.turn;
  }
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(due, now) - now);
}

void StatusPace::written(Job& job, StatusChange change, SteadyTime now) {
  job.changed_since.reset();
  job.turn.reset();
  if (change == StatusChange::progress) return;
  job.interval =
      change == StatusChange::counts ? std::min(job.interval * 2, kIntervalMax) : kIntervalMin;
  job.written = now;
}

}  // namespace tj
