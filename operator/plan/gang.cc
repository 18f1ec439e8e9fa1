#include "operator/plan/gang.h"

#include <algorithm>

namespace tj {

int world_size_of(const TrainingJob& job) {
  return job.status.world_size > 0 ? job.status.world_size : job.spec.worker_count;
}

namespace {

/// The job's own, of the attempt that its status names, and of a rank that is wanted.
bool is_worker_of(const TrainingJob& job, const Pod& pod) {
  return pod.meta.controller_uid == job.meta.uid && pod.attempt == job.status.attempt &&
         pod.worker_index >= 0 && pod.worker_index < world_size_of(job);
}

bool was_disrupted(const Pod& pod) {
  return std::any_of(pod.conditions.begin(), pod.conditions.end(),
                     [](const PodCondition& each) { return each.type == kDisruptionTarget; });
}

}  // namespace

Gang gang_of(const Observed& observed) {
  const TrainingJob& job = observed.job;
  const int world_size = world_size_of(job);
  Gang gang;
  gang.by_rank.resize(static_cast<std::size_t>(world_size), nullptr);
  for (const Pod& pod : observed.pods) {
    const bool wanted_rank = pod.worker_index >= 0 && pod.worker_index < world_size;
    if (pod.meta.controller_uid != job.meta.uid) {
      const bool in_the_way =
          wanted_rank && pod.meta.name == names::worker_pod(job.meta.name, pod.worker_index);
      if (in_the_way) gang.foreign_pod = &pod;
    } else if (is_worker_of(job, pod)) {
      gang.by_rank[static_cast<std::size_t>(pod.worker_index)] = &pod;
    } else {
      gang.leftover.push_back(&pod);
    }
  }
  for (const Pod& pod : observed.departed) {
    if (is_worker_of(job, pod)) gang.departed.push_back(&pod);
  }
  gang.succeeded = job.status.succeeded_ranks;
  for (const Pod* pod : gang.by_rank) {
    if (pod != nullptr && has_succeeded(*pod)) gang.succeeded.insert(pod->worker_index);
  }
  return gang;
}

bool has_departed(const TrainingJob& job, const Pod& deleted) {
  const bool is_known = job.status.phase == Phase::running && is_worker_of(job, deleted) &&
                        deleted.meta.name == names::worker_pod(job.meta.name, deleted.worker_index);
  return is_known && (has_failed(deleted) || was_disrupted(deleted));
}

bool has_succeeded(const Pod& pod) {
  if (!pod.exit) return pod.phase == PodPhase::succeeded;
  // A pod that failed as a whole was stopped, perhaps before its worker's work was done: many
  // programs end with 0 when they are asked to go. A pod that failed without a reason of its own
  // has a sidecar that did.
  const bool was_stopped =
      pod.phase == PodPhase::failed && (!pod.reason.empty() || was_disrupted(pod));
  return pod.exit->exit_code == 0 && !was_stopped;
}

bool has_failed(const Pod& pod) {
  if (has_succeeded(pod)) return false;
  return pod.phase == PodPhase::failed || pod.exit.has_value();
}

bool has_ended(const Pod& pod) { return has_succeeded(pod) || has_failed(pod); }

bool has_started(const Pod& pod) { return has_ended(pod) || pod.phase == PodPhase::running; }

ReplicaStatus count_workers(const TrainingJob& job, const Gang& gang) {
  ReplicaStatus count{.desired = job.spec.worker_count};
  const auto count_living = [&count](const Pod& pod) {
    if (!has_ended(pod)) ++count.active;
    if (pod.meta.deletion_time) ++count.terminating;
  };
  for (const Pod* pod : gang.leftover) count_living(*pod);
  count.succeeded = gang.succeeded.size();
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    count_living(*pod);
    if (has_failed(*pod) && !gang.succeeded.contains(pod->worker_index)) ++count.failed;
    const bool is_ready = !has_ended(*pod) && pod->phase == PodPhase::running && pod->ready;
    if (is_ready) ++count.ready;
  }
  return count;
}

bool has_started(const Gang& gang, int worker_index) {
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(worker_index)];
  return gang.succeeded.contains(worker_index) || (pod != nullptr && has_started(*pod));
}

bool has_ended(const Gang& gang, int worker_index) {
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(worker_index)];
  return gang.succeeded.contains(worker_index) || (pod != nullptr && has_ended(*pod));
}

bool is_missing(const Gang& gang, int worker_index) {
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(worker_index)];
  return pod == nullptr && !gang.succeeded.contains(worker_index);
}

int missing_count(const Gang& gang) {
  int count = 0;
  for (int rank = 0; rank < static_cast<int>(gang.by_rank.size()); ++rank) {
    if (is_missing(gang, rank)) ++count;
  }
  return count;
}

bool all_have_started(const Gang& gang) {
  const int count = static_cast<int>(gang.by_rank.size());
  for (int rank = 0; rank < count; ++rank) {
    if (!has_started(gang, rank)) return false;
  }
  return true;
}

bool has_reached_its_end(const TrainingJob& job, const Gang& gang) {
  if (job.spec.success == SuccessPolicy::worker0) return gang.succeeded.contains(0);
  return gang.succeeded.size() == static_cast<int>(gang.by_rank.size());
}

bool has_ever_run(const Observed& observed) {
  const TrainingJob& job = observed.job;
  return job.status.attempt > 0 || job.status.running_time ||
         std::any_of(observed.pods.begin(), observed.pods.end(), [&](const Pod& pod) {
           return pod.meta.controller_uid == job.meta.uid && has_started(pod);
         });
}

bool needs_nodes(const TrainingJob& job) {
  return job.status.workers.active > 0 || job.status.workers.terminating > 0;
}

bool is_managed_elsewhere(const TrainingJob& job) {
  return job.spec.run.managed_by != names::kManager;
}

const Pod* predecessor_of(const Gang& gang, int worker_index) {
  for (const Pod* pod : gang.leftover) {
    if (pod->worker_index == worker_index) return pod;
  }
  return nullptr;
}

std::optional<TimePoint> silent_since(const Observed& observed, const Pod& pod) {
  for (const Node& node : observed.nodes) {
    if (!pod.node.empty() && node.meta.name == pod.node) return node.silent_since;
  }
  return std::nullopt;
}

std::optional<TimePoint> lost_at(const Observed& observed, const Pod& pod) {
  const auto since = silent_since(observed, pod);
  if (!since) return std::nullopt;
  // The creation is of the API server's clock: one that is still to come tells nothing. The attempt
  // began before its pods, by ours.
  TimePoint from = std::max(*since, observed.job.status.attempt_start_time.value_or(*since));
  const auto& made = pod.meta.creation_time;
  if (made && *made <= observed.now) from = std::max(from, *made);
  return from + observed.job.spec.node_loss.tolerance;
}

}  // namespace tj
