// Which worker failed first, of what, and what follows from it. Pure.
// One lost rank blocks every collective, so the gang restarts or fails as a whole
// (docs/adr/0003-gang-as-a-unit.md); the failures of others after the first are collateral.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/gang.h"

namespace tj {

/// A first failure together with what only rules look at.
struct Failure {
  FirstFailure what;
  std::vector<PodCondition> conditions;  // of its pod
  bool is_collateral = false;            // it blames a lost peer, and nobody else has failed
  bool is_wrong_command = false;         // it could not even be started, in a first attempt
};

/// What every failure says: whose it is, where, and when it was found. Reason and message are the
/// cause's own.
FirstFailure failure(const Observed& observed, const Gang& gang, int rank, FailureCause cause);

/// The worker that failed first: the earliest end; one that says it lost a peer only if no other
/// failed; ties go to the lowest rank. A worker is also lost with its node, with its pod, or when
/// the start deadline has passed, or the run hangs. Absent: all is well.
std::optional<Failure> find_first_failure(const Observed& observed, const Gang& gang);

/// The first of the job's rules that matches, else the built-in class (docs/trainingjob.md).
FailureAction action_for(const Observed& observed, const Failure& failure);

/// It came from outside, and says nothing against the program.
bool is_disruption(const FirstFailure& what);

/// The job's status after the verdict on a failure: restarted as the next attempt, or failed.
JobStatus judge_failure(const Observed& observed, const Gang& gang, const Failure& failure);

inline constexpr int kUncountedRestartsMax = 1'000;  // months of preemptions; more is a loop
inline constexpr int kNodeFailuresMax = 2;           // then the node is excluded
/// What a node refuses within so long is one refusal: a node that has just come back does so until
/// its device plug-in has registered.
inline constexpr std::chrono::seconds kRefusalInterval{60};
/// A container that ends so soon with 126 or 127 has not run its command.
inline constexpr std::chrono::seconds kCommandStart{10};
inline constexpr std::size_t kNodesListedMax = 16;

}  // namespace tj
