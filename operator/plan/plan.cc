// The lifecycle: Pending -> Starting -> Running -> Succeeded | Failed. Every verdict is written to
// the status before anything is deleted because of it, so that an operator that dies in between
// finds the verdict and goes on. A gang restart will be one more verdict beside `fail`: it counts
// the attempt up, and the pods of the attempt before become leftovers, which are deleted here
// already.
#include "operator/plan/plan.h"

#include <algorithm>

#include "contract/outcome.h"
#include "operator/plan/gang.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

/// How long a job whose failed workers all blame a lost peer waits for that peer's own report.
constexpr std::chrono::milliseconds kCulpritWait{5'000};

/// The kubelet tells of a container's end before the pod's. A pod that runs on for longer than this
/// holds more than its worker, and is stopped like any other.
constexpr std::chrono::milliseconds kPodEndWait{10'000};

struct Verdict {
  Phase phase = Phase::pending;
  std::string reason;
  std::string message;
};

void set_condition(JobStatus& status, const Condition& wanted, TimePoint now) {
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& known) { return known.type == wanted.type; });
  if (found == status.conditions.end()) {
    found = status.conditions.insert(status.conditions.end(), wanted);
    found->last_transition_time = now;
    return;
  }
  const bool flipped = found->status != wanted.status;
  const auto since = flipped ? std::optional(now) : found->last_transition_time;
  *found = wanted;
  found->last_transition_time = since;
}

void set_conditions(JobStatus& status, TimePoint now) {
  const std::pair<const char*, Phase> kTypes[] = {
      {"Running", Phase::running}, {"Succeeded", Phase::succeeded}, {"Failed", Phase::failed}};
  for (const auto& [type, phase] : kTypes) {
    set_condition(status,
                  {.type = type,
                   .status = status.phase == phase,
                   .reason = status.reason,
                   .message = status.message,
                   .observed_generation = status.observed_generation,
                   .last_transition_time = {}},
                  now);
  }
}

/// Puts the verdict into the plan's status; a change of phase or reason is an event.
void conclude(Plan& plan, const Verdict& verdict, const Observed& observed) {
  JobStatus& status = plan.status;
  const JobStatus& before = observed.job.status;
  status.phase = verdict.phase;
  status.reason = verdict.reason;
  status.message = verdict.message;
  status.observed_generation = observed.job.meta.generation;
  status.selector = job_selector(observed.job.meta.name);
  if (!status.start_time) status.start_time = observed.now;
  if (is_terminal(verdict.phase) && !status.completion_time) status.completion_time = observed.now;
  set_conditions(status, observed.now);
  const bool is_news = before.phase != status.phase || before.reason != status.reason;
  const bool is_warning = status.phase == Phase::failed || observed.create_error.has_value();
  if (is_news) plan.events.push_back({is_warning, status.reason, status.message});
  // The verdict is persisted first; what follows from it (stopping the others) is the next plan's.
  if (is_terminal(verdict.phase)) plan.requeue_after = std::chrono::milliseconds{0};
}

std::string ready_text(const ReplicaStatus& count) {
  return std::to_string(count.ready) + "/" + std::to_string(count.desired);
}

void delete_unless_leaving(Plan& plan, const Pod& pod) {
  if (!pod.meta.deletion_time) plan.actions.push_back(DeletePod{pod.meta.name, pod.meta.uid});
}

/// Deleting it now would take the log of a worker that has ended with it.
bool is_about_to_end(const Pod& pod, TimePoint now) {
  return has_ended(pod) && pod.exit && pod.exit->finished_at &&
         now < *pod.exit->finished_at + kPodEndWait;
}

/// A terminal state is final: only the workers that still run are stopped, and counted. Those that
/// ended stay, so that their logs can be read.
Plan plan_finished(const Observed& observed, const Gang& gang) {
  Plan plan{.actions = {}, .status = observed.job.status, .events = {}, .requeue_after = {}};
  for (const Pod* pod : gang.by_rank) {
    const bool still_runs =
        pod != nullptr && (pod->phase == PodPhase::pending || pod->phase == PodPhase::running ||
                           pod->phase == PodPhase::unknown);
    if (still_runs && is_about_to_end(*pod, observed.now)) {
      plan.requeue_after = kPodEndWait;
    } else if (still_runs) {
      delete_unless_leaving(plan, *pod);
    }
  }
  for (const Pod* pod : gang.leftover) delete_unless_leaving(plan, *pod);
  const ReplicaStatus count = count_workers(gang);
  plan.status.workers.active = count.active;
  plan.status.workers.ready = count.ready;
  plan.status.ready_text = ready_text(plan.status.workers);
  return plan;
}

/// What must go or come so that each rank has exactly one pod of this attempt. Nothing is created
/// beside a stranger.
std::vector<Action> gather_gang(const Observed& observed, const Gang& gang) {
  Plan plan;
  for (const Pod* pod : gang.leftover) delete_unless_leaving(plan, *pod);
  if (!observed.service) plan.actions.insert(plan.actions.begin(), CreateService{});
  for (std::size_t rank = 0; rank < gang.by_rank.size(); ++rank) {
    const int index = static_cast<int>(rank);
    const bool still_occupied =
        std::any_of(gang.leftover.begin(), gang.leftover.end(),
                    [&](const Pod* pod) { return pod->worker_index == index; });
    if (gang.by_rank[rank] == nullptr && !still_occupied) {
      plan.actions.push_back(CreatePod{index, observed.job.status.attempt});
    }
  }
  return plan.actions;
}

std::string of_workers(int count, const Gang& gang) {
  return std::to_string(count) + " of " + std::to_string(gang.by_rank.size()) + " workers";
}

std::string describe_first_failure(const FirstFailure& failure) {
  std::string text = "worker " + std::to_string(failure.rank);
  if (!failure.node.empty()) text += " on node " + failure.node;
  text += " failed first: ";
  text += failure.exit_code ? describe_exit_code(*failure.exit_code) : failure.reason;
  if (!failure.message.empty()) text += ": " + failure.message;
  return text;
}

/// A worker that had started and is gone was lost: nobody can join its gang any more.
std::optional<int> find_lost_worker(const Observed& observed, const Gang& gang) {
  if (observed.job.status.phase != Phase::running) return std::nullopt;
  for (std::size_t rank = 0; rank < gang.by_rank.size(); ++rank) {
    if (gang.by_rank[rank] == nullptr) return static_cast<int>(rank);
  }
  return std::nullopt;
}

bool must_wait_for_culprit(const Observed& observed, const Gang& gang) {
  const auto failure = find_first_failure(gang);
  if (!failure || !only_collateral_failures(gang)) return false;
  const bool all_ended = count_workers(gang).active == 0;
  return !all_ended && failure->finished_at && observed.now < *failure->finished_at + kCulpritWait;
}

/// Another owner's object that holds one of our names, as far as the caches know. Its end will be
/// seen by a watch: until then there is no use in trying.
std::optional<std::string> find_stranger(const Observed& observed, const Gang& gang) {
  if (gang.stranger != nullptr) return "pod " + gang.stranger->meta.name;
  const bool foreign_service =
      observed.service && observed.service->meta.controller_uid != observed.job.meta.uid;
  if (foreign_service) return "Service " + observed.service->meta.name;
  return std::nullopt;
}

Verdict judge_refusal(const Observed& observed, const Gang& gang) {
  const Phase phase = count_workers(gang).active > 0 ? Phase::starting : Phase::pending;
  const bool name_taken = observed.refusal == Refusal::name_taken;
  return {phase, name_taken ? "NameConflict" : "CreateFailed", *observed.create_error};
}

Verdict judge_progress(const Observed& observed, const Gang& gang) {
  const auto started = std::count_if(gang.by_rank.begin(), gang.by_rank.end(),
                                     [](const Pod* pod) { return pod && has_started(*pod); });
  const bool any_created = std::any_of(gang.by_rank.begin(), gang.by_rank.end(),
                                       [](const Pod* pod) { return pod != nullptr; });
  const bool was_running = observed.job.status.phase == Phase::running;
  const bool all_started = static_cast<std::size_t>(started) == gang.by_rank.size();
  if (all_started || was_running) {
    return {Phase::running, "WorkersRunning",
            of_workers(static_cast<int>(gang.by_rank.size()), gang) + " have started"};
  }
  if (!any_created) {
    return {Phase::pending, "CreatingWorkers",
            "creating " + std::to_string(gang.by_rank.size()) + " workers"};
  }
  return {Phase::starting, "WaitingForWorkers", describe_waiting(gang)};
}

Plan plan_active(const Observed& observed, const Gang& gang) {
  Plan plan{.actions = {}, .status = observed.job.status, .events = {}, .requeue_after = {}};
  const ReplicaStatus count = count_workers(gang);
  plan.status.workers = count;
  plan.status.ready_text = ready_text(count);
  if (must_wait_for_culprit(observed, gang)) {
    plan.requeue_after = kCulpritWait;
    return plan;
  }
  if (const auto failure = find_first_failure(gang)) {
    plan.status.first_failure = failure;
    conclude(plan, {Phase::failed, "WorkerFailed", describe_first_failure(*failure)}, observed);
    return plan;
  }
  if (const auto rank = find_lost_worker(observed, gang)) {
    const std::string name = names::worker_pod(observed.job.meta.name, *rank);
    const std::string message =
        "pod " + name + " of worker " + std::to_string(*rank) + " was deleted while the job ran";
    plan.status.first_failure = FirstFailure{.rank = *rank,
                                             .node = {},
                                             .exit_code = {},
                                             .reason = "PodDeleted",
                                             .message = message,
                                             .finished_at = observed.now};
    conclude(plan, {Phase::failed, "WorkerLost", message}, observed);
    return plan;
  }
  if (count.succeeded == count.desired) {
    conclude(plan,
             {Phase::succeeded, "WorkersSucceeded",
              of_workers(count.succeeded, gang) + " ended with exit code 0"},
             observed);
    return plan;
  }
  if (observed.create_error && observed.refusal == Refusal::invalid) {
    conclude(plan, {Phase::failed, "Invalid", *observed.create_error}, observed);
    return plan;
  }
  if (const auto stranger = find_stranger(observed, gang)) {
    const std::string message = *stranger +
                                " belongs to another owner (an earlier job of this name?); "
                                "waiting for it to go";
    conclude(plan, {Phase::pending, "NameConflict", message}, observed);
    return plan;
  }
  plan.actions = gather_gang(observed, gang);
  conclude(plan,
           observed.create_error ? judge_refusal(observed, gang) : judge_progress(observed, gang),
           observed);
  return plan;
}

}  // namespace

Plan plan(const Observed& observed) {
  const TrainingJob& job = observed.job;
  if (job.meta.deletion_time) {
    return {.actions = {}, .status = job.status, .events = {}, .requeue_after = {}};
  }
  const Gang gang = gang_of(observed);
  if (is_terminal(job.status.phase)) return plan_finished(observed, gang);
  if (job.spec_error) {
    Plan plan{.actions = {}, .status = job.status, .events = {}, .requeue_after = {}};
    plan.status.workers = count_workers(gang);
    plan.status.ready_text = ready_text(plan.status.workers);
    conclude(plan, {Phase::failed, "Invalid", *job.spec_error}, observed);
    return plan;
  }
  return plan_active(observed, gang);
}

}  // namespace tj
