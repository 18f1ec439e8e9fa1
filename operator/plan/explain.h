// What holds a job up, and what ended it, in plain words: the status message and the list of ranks
// in trouble. Pure. The texts are stable while nothing happens: they name times, not durations,
// and leave out what alternates in the messages of scheduler and kubelet.
#pragma once
#include <string>
#include <vector>

#include "operator/plan/gang.h"

namespace tj {

inline constexpr std::size_t kTroubledRanksMax = 16;
/// A container that is created for longer than this is asked about: its pod alone doesn't tell.
inline constexpr std::chrono::seconds kSilentStart{20};

/// "12:04:05Z": the day is in the condition's own time.
std::string clock_text(TimePoint time);

/// Ranks whose pod says that it can't start, at most kTroubledRanksMax, by rank.
std::vector<TroubledRank> troubled_ranks(const Observed& observed, const Gang& gang);

/// "waiting for 3 of 16 workers: 0/2 nodes have 8 nvidia.com/gpu free, since 12:04:05Z": what holds
/// up the first of them stands for all.
std::string describe_waiting(const Observed& observed, const Gang& gang);

/// The worker that keeps silent about why it has not started yet, or nullptr.
const Pod* find_silent_start(const Observed& observed, const Gang& gang);

/// "worker 2 on node n1 failed first: exit code 1: disk full; 3 other workers failed after it".
std::string describe_first_failure(const FirstFailure& failure);

}  // namespace tj
