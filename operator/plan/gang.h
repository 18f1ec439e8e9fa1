// What the pods of a job say about its gang, before anything is decided. Pure; read by plan/ alone.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace tj {

/// The job's own pods of the current attempt by rank, and whatever stands in their way.
struct Gang {
  std::vector<const Pod*> by_rank;   // size world_size_of(job); nullptr: no pod
  std::vector<const Pod*> leftover;  // ours, of an earlier attempt or of a rank that is not wanted
  std::vector<const Pod*> departed;  // of the current attempt, deleted; as they were last seen
  const Pod* foreign_pod = nullptr;  // has one of our names, and another owner
  RankSet succeeded;                 // by their pods, or by the status when these have gone
};
Gang gang_of(const Observed& observed);

/// Workers of the current attempt: as recorded when it began, whatever the spec says by now.
int world_size_of(const TrainingJob& job);

/// The condition of a pod that is preempted, evicted or drained (KEP-3329).
inline constexpr const char* kDisruptionTarget = "DisruptionTarget";

/// The main container has ended with 0, and nobody stopped the pod. What its sidecars did or do
/// does not count.
bool has_succeeded(const Pod& pod);
/// Ended otherwise.
bool has_failed(const Pod& pod);
bool has_ended(const Pod& pod);
/// Started, whether or not it has ended since.
bool has_started(const Pod& pod);
/// The same of a rank, whose pod may have gone since it has succeeded.
bool has_started(const Gang& gang, int worker_index);
bool has_ended(const Gang& gang, int worker_index);
/// It needs a pod, and has none.
bool is_missing(const Gang& gang, int worker_index);
int missing_count(const Gang& gang);

ReplicaStatus count_workers(const TrainingJob& job, const Gang& gang);
bool all_have_started(const Gang& gang);
/// By the job's success policy.
bool has_reached_its_end(const TrainingJob& job, const Gang& gang);
/// One of its pods has started, or may have (of earlier attempts nothing is known): a server that
/// has taken it once may do so again.
bool has_ever_run(const Observed& observed);
/// The rank's pod of an earlier attempt that has still to go, or nullptr.
const Pod* predecessor_of(const Gang& gang, int worker_index);

/// Since when the node of `pod` is silent; absent: it is heard of, or nodes are not watched.
std::optional<TimePoint> silent_since(const Observed& observed, const Pod& pod);
/// When `pod` counts as lost with its silent node, if nothing is heard until then. A pod that was
/// made since has its own time: the scheduler may know more than our watch does.
std::optional<TimePoint> lost_at(const Observed& observed, const Pod& pod);

}  // namespace tj
