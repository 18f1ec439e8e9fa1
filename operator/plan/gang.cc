#include "operator/plan/gang.h"

#include <algorithm>
#include <tuple>

#include "contract/outcome.h"

namespace tj {
namespace {

bool is_collateral(const Pod& pod) {
  return pod.exit && pod.exit->exit_code == exit_code::kPeerLost;
}

/// Sorts failures by what they tell: causes before collateral, then by time, then by rank.
auto blame_order(const Pod& pod) {
  const TimePoint finished_at =
      pod.exit && pod.exit->finished_at ? *pod.exit->finished_at : TimePoint::max();
  return std::tuple(is_collateral(pod), finished_at, pod.worker_index);
}

FirstFailure describe_failure(const Pod& pod) {
  FirstFailure failure{.rank = pod.worker_index,
                       .node = pod.node,
                       .exit_code = {},
                       .reason = pod.reason.empty() ? "PodFailed" : pod.reason,
                       .message = pod.message,
                       .finished_at = {}};
  if (!pod.exit) return failure;
  failure.exit_code = pod.exit->exit_code;
  failure.finished_at = pod.exit->finished_at;
  if (pod.reason.empty()) failure.reason = pod.exit->reason;
  const auto outcome = from_termination_message(pod.exit->message);
  if (outcome) {
    failure.reason = outcome->reason;
    failure.message = outcome->message;
  } else if (failure.message.empty()) {
    failure.message = pod.exit->message;
  }
  return failure;
}

}  // namespace

Gang gang_of(const Observed& observed) {
  const TrainingJob& job = observed.job;
  Gang gang;
  gang.by_rank.resize(static_cast<std::size_t>(job.spec.worker_count), nullptr);
  for (const Pod& pod : observed.pods) {
    const bool wanted_rank = pod.worker_index >= 0 && pod.worker_index < job.spec.worker_count;
    if (pod.meta.controller_uid != job.meta.uid) {
      const bool in_the_way =
          wanted_rank && pod.meta.name == names::worker_pod(job.meta.name, pod.worker_index);
      if (in_the_way) gang.stranger = &pod;
    } else if (wanted_rank && pod.attempt == job.status.attempt) {
      gang.by_rank[static_cast<std::size_t>(pod.worker_index)] = &pod;
    } else {
      gang.leftover.push_back(&pod);
    }
  }
  return gang;
}

bool has_succeeded(const Pod& pod) {
  if (pod.exit) return pod.exit->exit_code == 0 && pod.phase != PodPhase::failed;
  return pod.phase == PodPhase::succeeded;
}

bool has_failed(const Pod& pod) {
  if (pod.phase == PodPhase::failed) return true;
  return pod.exit && pod.exit->exit_code != 0;
}

bool has_ended(const Pod& pod) { return has_succeeded(pod) || has_failed(pod); }

bool has_started(const Pod& pod) { return has_ended(pod) || pod.phase == PodPhase::running; }

ReplicaStatus count_workers(const Gang& gang) {
  ReplicaStatus count{.desired = static_cast<int>(gang.by_rank.size())};
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    if (has_succeeded(*pod)) ++count.succeeded;
    if (has_failed(*pod)) ++count.failed;
    if (has_ended(*pod)) continue;
    ++count.active;
    if (pod->phase == PodPhase::running && pod->ready) ++count.ready;
  }
  return count;
}

std::optional<FirstFailure> find_first_failure(const Gang& gang) {
  const Pod* first = nullptr;
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr || !has_failed(*pod)) continue;
    if (first == nullptr || blame_order(*pod) < blame_order(*first)) first = pod;
  }
  if (first == nullptr) return std::nullopt;
  return describe_failure(*first);
}

bool only_collateral_failures(const Gang& gang) {
  bool some_failed = false;
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr || !has_failed(*pod)) continue;
    if (!is_collateral(*pod)) return false;
    some_failed = true;
  }
  return some_failed;
}

std::string describe_waiting(const Gang& gang) {
  int waiting_count = 0;
  std::string why;
  for (std::size_t rank = 0; rank < gang.by_rank.size(); ++rank) {
    const Pod* pod = gang.by_rank[rank];
    if (pod != nullptr && has_started(*pod)) continue;
    ++waiting_count;
    if (!why.empty() || pod == nullptr || pod->waiting_reason.empty()) continue;
    why = ": worker " + std::to_string(rank) + ": " + pod->waiting_reason;
    if (!pod->waiting_message.empty()) why += ": " + pod->waiting_message;
  }
  return "waiting for " + std::to_string(waiting_count) + " of " +
         std::to_string(gang.by_rank.size()) + " workers" + why;
}

}  // namespace tj
