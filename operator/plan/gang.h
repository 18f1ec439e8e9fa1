// What the pods of a job say about its gang, before anything is decided. Pure; read by plan.cc
// alone.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace tj {

/// The job's own pods of the current attempt by rank, and whatever stands in their way.
struct Gang {
  std::vector<const Pod*> by_rank;   // size worker_count; nullptr: no pod
  std::vector<const Pod*> leftover;  // ours, of an earlier attempt or of a rank that is not wanted
  const Pod* stranger = nullptr;     // holds one of our names, owned by somebody else
};
Gang gang_of(const Observed& observed);

/// The main container has ended well, or the whole pod has.
bool has_succeeded(const Pod& pod);
/// Ended otherwise; a sidecar that still runs does not count.
bool has_failed(const Pod& pod);
bool has_ended(const Pod& pod);
/// Started, whether or not it has ended since.
bool has_started(const Pod& pod);

ReplicaStatus count_workers(const Gang& gang);

/// The worker that failed first: the earliest finishedAt; a worker that says it lost a peer only if
/// no other failed; ties go to the lowest rank. Absent: none has failed.
std::optional<FirstFailure> find_first_failure(const Gang& gang);

/// Every failed worker blames a lost peer: whoever was lost has not been reported yet.
bool only_collateral_failures(const Gang& gang);

/// "waiting for 1 of 2 workers: worker 1: Unschedulable: 0/2 nodes ...": the first reason stands
/// for all.
std::string describe_waiting(const Gang& gang);

}  // namespace tj
