// The lifecycle: Pending -> Starting -> Running -> Succeeded | Failed, with Restarting and
// Suspended on the way. Every verdict is written to the status before anything is deleted because
// of it, so that an operator that dies in between finds the verdict and goes on. A restart counts
// the attempt up; the pods of the attempt before are leftovers from then on, which are deleted, and
// whose ranks are filled as soon as they are gone.
#include "operator/plan/plan.h"

#include <algorithm>

#include "operator/plan/attempt.h"
#include "operator/plan/backoff.h"
#include "operator/plan/conditions.h"
#include "operator/plan/excluded_nodes.h"
#include "operator/plan/explain.h"
#include "operator/plan/failure.h"
#include "operator/plan/gang.h"
#include "operator/plan/manifest.h"
#include "operator/plan/progress.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

/// How long a job whose failed workers all blame a lost peer waits for that peer's own report.
constexpr std::chrono::milliseconds kCauseWait{5'000};

/// The kubelet reports a container's end before the pod's. A pod that runs on for longer than this
/// holds more than its worker, and is stopped like any other.
constexpr std::chrono::milliseconds kPodEndWait{10'000};

/// While a worker does not start and its pod says no reason, its events are read so often.
constexpr std::chrono::milliseconds kAskAgain{30'000};

struct Verdict {
  Phase phase = Phase::pending;
  std::string reason;
  std::string message;
};

Plan plan_from(const JobStatus& status) {
  return {.actions = {}, .status = status, .events = {}, .requeue_after = {}};
}

/// The plan is due again at `deadline`, or before.
void look_again_at(Plan& plan, TimePoint deadline, TimePoint now) {
  const auto wait = std::max(deadline - now, std::chrono::milliseconds{1});
  plan.requeue_after = std::min(plan.requeue_after.value_or(wait), wait);
}

/// Puts the verdict into the plan's status; a change of phase, reason or attempt is an event, but
/// for the step that follows from the event before.
void conclude(Plan& plan, const Verdict& verdict, const Observed& observed) {
  JobStatus& status = plan.status;
  const JobStatus& before = observed.job.status;
  status.phase = verdict.phase;
  status.reason = verdict.reason;
  status.message = verdict.message;
  status.observed_generation = observed.job.meta.generation;
  status.selector = job_selector(observed.job.meta.name);
  if (is_terminal(verdict.phase)) {
    if (!status.completion_time) status.completion_time = observed.now;
    status.troubled_ranks.clear();
  }
  set_conditions(status, observed.job, observed.now);
  const bool is_restart = before.restarts != status.restarts;
  const bool is_changed = before.phase != status.phase || before.reason != status.reason;
  const bool is_news = is_restart || (is_changed && !is_on_its_way(before, status));
  const bool is_warning =
      status.phase == Phase::failed || is_restart || observed.create_error.has_value();
  if (is_news) plan.events.push_back({is_warning, status.reason, status.message});
  const Condition* invalid = find_invalid_spec(status);
  const bool is_newly_invalid = invalid != nullptr && find_invalid_spec(before) == nullptr;
  if (is_newly_invalid) plan.events.push_back({true, invalid->type, invalid->message});
  const auto& annotation_error = observed.job.annotation_error;
  if (before.reason.empty() && annotation_error)
    plan.events.push_back({true, "InvalidAnnotation", *annotation_error + "; taken as \"off\""});
  // The verdict is persisted first; what follows from it is the next plan's.
  const bool is_verdict = is_terminal(verdict.phase) || before.attempt != status.attempt;
  if (is_verdict) plan.requeue_after = std::chrono::milliseconds{0};
}

void count_into(JobStatus& status, const TrainingJob& job, const Gang& gang) {
  status.workers = count_workers(job, gang);
  status.succeeded_ranks = gang.succeeded;
  status.ready_text =
      std::to_string(status.workers.ready) + "/" + std::to_string(status.workers.desired);
}

/// Asks a pod to go. One that was on a node that stays silent can't answer: after the bound it is
/// removed by force. Its process may run on there, alone: the attempt keeps it out of the new gang.
void remove_pod(Plan& plan, const Observed& observed, const Pod& pod) {
  const NodeLoss& bounds = observed.job.spec.node_loss;
  const auto since = silent_since(observed, pod);
  if (!since || !bounds.forces_deletion()) {
    if (!pod.meta.deletion_time) plan.actions.push_back(DeletePod{pod.meta.name, pod.meta.uid});
    return;
  }
  const TimePoint given_up_at = *since + bounds.tolerance + bounds.force_delete;
  if (observed.now >= given_up_at) {
    plan.actions.push_back(DeletePod{pod.meta.name, pod.meta.uid, /*force=*/true});
    return;
  }
  if (!pod.meta.deletion_time) plan.actions.push_back(DeletePod{pod.meta.name, pod.meta.uid});
  look_again_at(plan, given_up_at, observed.now);
}

/// By the job's clean-pod policy, what becomes of a worker once the job has finished.
void clean_pod(Plan& plan, const Observed& observed, const Pod& pod) {
  const CleanPods policy = observed.job.spec.run.clean_pods;
  if (policy == CleanPods::none) return;
  if (policy == CleanPods::all) return remove_pod(plan, observed, pod);
  const bool still_runs = pod.phase != PodPhase::succeeded && pod.phase != PodPhase::failed;
  if (!still_runs) return;
  // Of a worker that has ended: to delete its pod before that ends would take its log, too. Its end
  // was known when the job's was, by our own clock.
  const TimePoint stop_at =
      observed.job.status.completion_time.value_or(observed.now) + kPodEndWait;
  if (has_ended(pod) && observed.now < stop_at) return look_again_at(plan, stop_at, observed.now);
  remove_pod(plan, observed, pod);
}

/// A terminal state is final: its workers are stopped and counted, and in time the job goes.
Plan plan_finished(const Observed& observed, const Gang& gang) {
  Plan plan = plan_from(observed.job.status);
  plan.status.observed_generation = observed.job.meta.generation;
  const JobStatus& status = observed.job.status;
  const auto ttl = observed.job.spec.run.ttl_after_finished;
  if (ttl && status.completion_time) {
    if (observed.now >= *status.completion_time + *ttl) {
      plan.actions.push_back(DeleteJob{});
      return plan;
    }
    look_again_at(plan, *status.completion_time + *ttl, observed.now);
  }
  for (const Pod* pod : gang.by_rank) {
    if (pod != nullptr) clean_pod(plan, observed, *pod);
  }
  for (const Pod* pod : gang.leftover) remove_pod(plan, observed, *pod);
  const ReplicaStatus before = status.workers;
  count_into(plan.status, observed.job, gang);
  // How they ended stays on record when their pods go.
  plan.status.workers.succeeded = before.succeeded;
  plan.status.workers.failed = before.failed;
  return plan;
}

Plan plan_suspended(const Observed& observed, const Gang& gang) {
  Plan plan = plan_from(observed.job.status);
  count_into(plan.status, observed.job, gang);
  if (plan.status.phase != Phase::suspended || plan.status.start_time) {
    (void)take_progress(plan.status, observed, gang, /*at_once=*/true);
    if (plan.status.start_time) end_attempt(plan.status);
    plan.status.start_time.reset();
    if (!plan.status.excluded_nodes.empty()) {
      const std::string news = readmit_nodes(plan.status, "the job was suspended");
      plan.events.push_back({false, reason::kNodesReadmitted, news});
    }
    conclude(plan, {Phase::suspended, reason::kSuspended, "suspended by runPolicy.suspend"},
             observed);
    plan.requeue_after = std::chrono::milliseconds{0};
    return plan;
  }
  for (const Pod& pod : observed.pods) {
    if (pod.meta.controller_uid == observed.job.meta.uid) remove_pod(plan, observed, pod);
  }
  conclude(plan, {Phase::suspended, reason::kSuspended, "suspended by runPolicy.suspend"},
           observed);
  return plan;
}

/// The network policy follows the spec. It is not watched: that it is as it must be stands in the
/// status, once apply has said so, and each attempt asks for it anew before its first pod.
void keep_network_policy(Plan& plan, const Observed& observed, bool is_beginning) {
  const std::string wanted = network_policy_hash(observed.job);
  std::string& recorded = plan.status.network_policy_hash;
  const bool is_put = observed.network_policy_hash == wanted;
  // The policy of a gang that runs was put before its pods: by a version that put down no hash.
  const bool has_status = observed.job.status.observed_generation > 0;
  const bool is_taken_over = recorded.empty() && !is_beginning && has_status;
  if (is_put || is_taken_over) recorded = wanted;
  if (wanted.empty()) {
    if (!recorded.empty()) plan.actions.push_back(DeleteNetworkPolicy{});
  } else if (is_beginning || recorded != wanted) {
    plan.actions.push_back(PutNetworkPolicy{});
  }
}

/// What must go or come so that each rank has exactly one pod of this attempt. Nothing is created
/// beside a foreign pod.
void gather_gang(Plan& plan, const Observed& observed, const Gang& gang) {
  for (const Pod* pod : gang.leftover) remove_pod(plan, observed, *pod);
  if (const auto begins = find_backoff(observed.job, observed.now)) {
    return look_again_at(plan, *begins, observed.now);
  }
  const bool is_beginning = missing_count(gang) == static_cast<int>(gang.by_rank.size());
  Actions pods;
  for (int rank = 0; rank < static_cast<int>(gang.by_rank.size()); ++rank) {
    if (is_missing(gang, rank) && predecessor_of(gang, rank) == nullptr) {
      pods.push_back(CreatePod{rank, observed.job.status.attempt});
    }
  }
  keep_network_policy(plan, observed, is_beginning && !pods.empty());
  if (!observed.service) plan.actions.push_back(CreateService{});
  plan.actions.insert(plan.actions.end(), pods.begin(), pods.end());
}

/// All failed workers blame a lost peer, and a worker is left that may report the cause. Since when
/// that is awaited; absent: no longer.
std::optional<TimePoint> awaits_cause_since(const Observed& observed, const Gang& gang,
                                            const Failure& failure) {
  if (!failure.is_collateral) return std::nullopt;
  bool have_all_ended = true;
  for (int rank = 0; rank < static_cast<int>(gang.by_rank.size()); ++rank) {
    have_all_ended = have_all_ended && has_ended(gang, rank);
  }
  const TimePoint since =
      std::min(observed.awaits_cause_since.value_or(observed.now), observed.now);
  if (have_all_ended || observed.now >= since + kCauseWait) return std::nullopt;
  return since;
}

/// Another owner's object that holds one of our names, as far as the caches know. Its end will be
/// seen by a watch: until then there is no use in trying.
std::optional<std::string> find_name_conflict(const Observed& observed, const Gang& gang) {
  if (gang.foreign_pod != nullptr) return "pod " + gang.foreign_pod->meta.name;
  const bool foreign_service =
      observed.service && observed.service->meta.controller_uid != observed.job.meta.uid;
  if (foreign_service) return "Service " + observed.service->meta.name;
  return std::nullopt;
}

std::string of_workers(std::size_t count) {
  return std::to_string(count) + " of " + std::to_string(count) + " workers";
}

/// Where the gang is on its way, when nothing is wrong with it.
Verdict judge_progress(const Observed& observed, const Gang& gang) {
  const JobStatus& before = observed.job.status;
  const std::size_t count = gang.by_rank.size();
  if (all_have_started(gang) || before.phase == Phase::running) {
    return {Phase::running, reason::kWorkersRunning, of_workers(count) + " have started"};
  }
  const int missing = missing_count(gang);
  const bool is_gathering = before.phase == Phase::restarting && missing > 0;
  // The cause of the restart stays in view until all ranks have a pod again.
  if (is_gathering) return {Phase::restarting, before.reason, before.message};
  if (missing == static_cast<int>(count)) {
    return {Phase::pending, reason::kCreatingWorkers,
            "creating " + std::to_string(count) + " workers"};
  }
  return {Phase::starting, reason::kWaitingForWorkers, describe_waiting(observed, gang)};
}

const char* reason_of(Refusal refusal) {
  if (refusal == Refusal::name_taken) return reason::kNameConflict;
  return refusal == Refusal::internal ? reason::kInternalError : reason::kCreateFailed;
}

Verdict judge_refusal(const Observed& observed, const Gang& gang) {
  const bool any_alive = std::any_of(gang.by_rank.begin(), gang.by_rank.end(), [](const Pod* pod) {
    return pod != nullptr && !has_ended(*pod);
  });
  const bool runs = observed.job.status.phase == Phase::running;
  return {runs ? Phase::running : (any_alive ? Phase::starting : Phase::pending),
          reason_of(observed.refusal), *observed.create_error};
}

void begin_again(Plan& plan, const Observed& observed) {
  end_attempt(plan.status);
  record_attempt(plan.status, observed);
}

void begin_again_as_specified(Plan& plan, const Observed& observed) {
  const int before = plan.status.world_size;
  begin_again(plan, observed);
  const int now = plan.status.world_size;
  std::string what = "the workers' template has changed";
  if (before == 0) {
    what =
        "the spec was changed, and the Service that said what the workers were made from is gone";
  } else if (before != now) {
    what = "the number of workers was changed from " + std::to_string(before) + " to " +
           std::to_string(now);
  }
  conclude(plan, {Phase::restarting, reason::kSpecChanged, what + "; all workers begin anew"},
           observed);
}

/// Excluded nodes come back. Pods that were made without them, and have found no other, are made
/// anew: nothing has run that would be lost.
void end_exclusion(Plan& plan, const Observed& observed, const Gang& gang, const std::string& why) {
  const std::string news = readmit_nodes(plan.status, why);
  const bool is_waiting = std::any_of(gang.by_rank.begin(), gang.by_rank.end(), [](const Pod* pod) {
    return pod != nullptr && !has_started(*pod) && pod->node.empty();
  });
  if (!is_waiting) {
    plan.events.push_back({false, reason::kNodesReadmitted, news});
    return;
  }
  begin_again(plan, observed);
  conclude(plan, {Phase::restarting, reason::kNodesReadmitted, news + "; all workers begin anew"},
           observed);
}

void fail_or_restart(Plan& plan, const Observed& observed, const Gang& gang,
                     const Failure& failure) {
  const ReplicaStatus counts = plan.status.workers;
  const std::string ready = plan.status.ready_text;
  plan.status = judge_failure(observed, gang, failure);
  plan.status.workers = counts;
  plan.status.ready_text = ready;
  if (plan.status.phase == Phase::restarting) {
    plan.status.running_time.reset();
    plan.status.troubled_ranks.clear();
    plan.status.succeeded_ranks.clear();
  }
  conclude(plan, {plan.status.phase, plan.status.reason, plan.status.message}, observed);
}

/// Deadlines that may pass while nothing else happens.
void watch_the_clock(Plan& plan, const Observed& observed, const Gang& gang) {
  const RunPolicy& policy = observed.job.spec.run;
  const JobStatus& status = plan.status;
  const auto look_at = [&](const std::optional<TimePoint>& from, std::chrono::seconds length) {
    if (from && *from + length > observed.now) look_again_at(plan, *from + length, observed.now);
  };
  if (policy.active_deadline) look_at(status.start_time, *policy.active_deadline);
  if (policy.start_deadline && !all_have_started(gang)) {
    look_at(status.attempt_start_time, *policy.start_deadline);
  }
  if (!status.excluded_nodes.empty()) {
    look_at(status.last_exclusion_time, observed.job.spec.node_loss.exclude);
  }
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    look_at(lost_at(observed, *pod), std::chrono::seconds{0});
    const bool may_turn_silent =
        !has_started(*pod) && !pod->node.empty() && pod->waiting_reason.empty();
    if (may_turn_silent) look_at(pod->meta.creation_time, kSilentStart);
  }
  if (const Pod* silent = find_silent_start(observed, gang)) {
    plan.ask_about = silent->meta.name;
    look_again_at(plan, observed.now + kAskAgain, observed.now);
  }
}

/// An end that does not depend on how a worker failed.
std::optional<Verdict> judge_end(const Observed& observed, const Gang& gang) {
  const TrainingJob& job = observed.job;
  if (has_reached_its_end(job, gang)) {
    const bool by_worker0 = job.spec.success == SuccessPolicy::worker0;
    const std::string who = by_worker0 ? "worker 0" : of_workers(gang.by_rank.size());
    return Verdict{Phase::succeeded,
                   by_worker0 ? reason::kWorker0Succeeded : reason::kWorkersSucceeded,
                   who + " ended with exit code 0"};
  }
  const auto deadline = job.spec.run.active_deadline;
  const bool is_late =
      deadline && job.status.start_time && observed.now >= *job.status.start_time + *deadline;
  if (is_late) {
    return Verdict{Phase::failed, reason::kDeadlineExceeded,
                   "it was active for longer than runPolicy.activeDeadlineSeconds, " +
                       std::to_string(deadline->count()) + " s"};
  }
  const bool is_final = observed.create_error && observed.refusal == Refusal::invalid;
  if (is_final && !has_ever_run(observed)) {
    return Verdict{Phase::failed, reason::kInvalid, *observed.create_error};
  }
  return std::nullopt;
}

Plan plan_active(const Observed& observed, const Gang& gang) {
  Plan plan = plan_from(observed.job.status);
  count_into(plan.status, observed.job, gang);
  if (const auto end = judge_end(observed, gang)) {
    (void)take_progress(plan.status, observed, gang, /*at_once=*/true);
    conclude(plan, *end, observed);
    return plan;
  }
  if (is_other_than_recorded(observed.job) || is_record_lost(observed)) {
    begin_again_as_specified(plan, observed);
    return plan;
  }
  record_attempt(plan.status, observed);
  if (const auto failure = find_first_failure(observed, gang)) {
    plan.awaits_cause_since = awaits_cause_since(observed, gang, *failure);
    if (plan.awaits_cause_since) {
      look_again_at(plan, *plan.awaits_cause_since + kCauseWait, observed.now);
    } else {
      fail_or_restart(plan, observed, gang, *failure);
    }
    return plan;
  }
  if (const auto why = end_of_exclusion(observed, gang)) {
    end_exclusion(plan, observed, gang, *why);
    if (plan.status.attempt != observed.job.status.attempt) return plan;
  }
  plan.status.troubled_ranks = troubled_ranks(observed, gang);
  if (const auto conflict = find_name_conflict(observed, gang)) {
    for (const Pod* pod : gang.leftover) remove_pod(plan, observed, *pod);
    const std::string message = *conflict +
                                " belongs to another owner (an earlier job of this name?); "
                                "waiting for it to go";
    conclude(plan, {Phase::pending, reason::kNameConflict, message}, observed);
    watch_the_clock(plan, observed, gang);
    return plan;
  }
  gather_gang(plan, observed, gang);
  if (!plan.status.running_time && all_have_started(gang)) plan.status.running_time = observed.now;
  conclude(plan,
           observed.create_error ? judge_refusal(observed, gang) : judge_progress(observed, gang),
           observed);
  watch_the_clock(plan, observed, gang);
  if (const auto due = take_progress(plan.status, observed, gang, /*at_once=*/false)) {
    look_again_at(plan, *due, observed.now);
  }
  return plan;
}

Plan plan_invalid(const Observed& observed, const Gang& gang) {
  Plan plan = plan_from(observed.job.status);
  count_into(plan.status, observed.job, gang);
  conclude(plan, {Phase::failed, reason::kInvalid, *observed.job.spec_error}, observed);
  return plan;
}

/// The job goes, and its pods with it; only those that can't go by themselves are helped.
Plan plan_leaving(const Observed& observed) {
  Plan plan = plan_from(observed.job.status);
  for (const Pod& pod : observed.pods) {
    const bool is_ours = pod.meta.controller_uid == observed.job.meta.uid;
    if (is_ours && pod.meta.deletion_time) remove_pod(plan, observed, pod);
  }
  return plan;
}

/// An attempt is in the status, and begun, before its first pod is made: a pod of a later one says
/// that this status is old, seen by an operator whose watch is behind. Nothing may follow from it.
bool is_behind_its_pods(const Observed& observed) {
  const TrainingJob& job = observed.job;
  const bool has_begun = job.status.phase != Phase::suspended || job.status.start_time;
  const int newest = has_begun ? job.status.attempt : job.status.attempt - 1;
  return std::any_of(observed.pods.begin(), observed.pods.end(), [&](const Pod& pod) {
    return pod.meta.controller_uid == job.meta.uid && pod.attempt > newest;
  });
}

Plan plan_by_status(const Observed& observed) {
  const TrainingJob& job = observed.job;
  if (is_managed_elsewhere(job) || is_behind_its_pods(observed)) return plan_from(job.status);
  if (job.meta.deletion_time) return plan_leaving(observed);
  const Gang gang = gang_of(observed);
  if (is_terminal(job.status.phase)) return plan_finished(observed, gang);
  if (job.spec_error && !may_break_rules(job)) return plan_invalid(observed, gang);
  const bool stays_suspended = job.spec.run.suspend && !has_reached_its_end(job, gang);
  return stays_suspended ? plan_suspended(observed, gang) : plan_active(observed, gang);
}

}  // namespace

Plan plan_after_bug(const TrainingJob& job, const std::string& words, TimePoint now) {
  Plan plan = plan_from(job.status);
  const bool is_ours_to_tell = !is_managed_elsewhere(job) && !job.meta.deletion_time;
  if (!is_ours_to_tell || is_terminal(job.status.phase)) return plan;
  conclude(plan, {job.status.phase, reason::kInternalError, words},
           Observed{.job = job, .now = now, .create_error = words});
  return plan;
}

Plan plan(const Observed& observed) {
  Plan next;
  if (is_recorded_by_service(observed)) {
    Observed as_recorded = observed;
    record_by_service(as_recorded.job.status, observed);
    next = plan_by_status(as_recorded);
  } else {
    next = plan_by_status(observed);
  }
  next.must_persist_first = must_persist_first(observed, next);
  return next;
}

}  // namespace tj
