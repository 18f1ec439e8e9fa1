// How far the run is, and whether it still moves: from what its rank 0 serves (contract/progress.h)
// and says in its termination message. Pure. Why the clocks are as they are: docs/adr/0017.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "operator/plan/gang.h"

namespace tj {

/// A longer phase of a document is left out of the status.
inline constexpr std::size_t kProgressPhaseBytesMax = 32;

/// Puts what was last read of this attempt into `status`, if it is news: a step, a phase, a
/// checkpoint. Rates alone are not. Returns when it may be written, if that is not now: there is a
/// time between two writes of one attempt, unless `at_once`.
std::optional<TimePoint> take_progress(JobStatus& status, const Observed& observed,
                                       const Gang& gang, bool at_once);

/// The run stands still for longer than runPolicy.heartbeatTimeoutSeconds, by its own report or
/// because rank 0, which was read in this attempt, can't be read any more. Absent: it moves, or
/// nobody can tell.
std::optional<FirstFailure> find_hang(const Observed& observed, const Gang& gang);

/// The step that a restart goes back to, as far as the status knows: of the last checkpoint, else
/// where the attempt is.
std::optional<long long> reached_step(const JobStatus& status);

}  // namespace tj
