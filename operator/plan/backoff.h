// How long a restart waits, so that a program that fails at once doesn't use up its restarts within
// a second, and a place that refuses it gets time. Pure; what it goes by stands in the status.
#pragma once
#include <chrono>
#include <optional>

#include "operator/plan/failure.h"

namespace tj {

inline constexpr std::chrono::seconds kBackoffMax{300};
/// An attempt that has run for so long was no quick failure.
inline constexpr std::chrono::seconds kSteadyRun{60};

/// Puts down when the attempt begins that `status` has just been given, and says it if that is
/// later. At once after an attempt that ran steadily or came further, and after the first
/// disruption; otherwise runPolicy.restartBackoffSeconds, doubled each time in a row.
void set_backoff(JobStatus& status, const Observed& observed, const FirstFailure& failure);

/// The moment that the current attempt waits for; absent: it may begin.
std::optional<TimePoint> find_backoff(const TrainingJob& job, TimePoint now);

}  // namespace tj
