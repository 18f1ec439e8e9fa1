// How long each phase may stand still before the run is ended. Pure.
#pragma once
#include <optional>
#include <string>

#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

/// Seconds; 0: no limit.
struct Limits {
  double start = 600;  // from the meeting of the ranks to the end of the first step
  double step = 300;
  double eval = 300;
  double save = 600;
  /// Without a sign of life of the whole process, in any phase: it is frozen or unreachable, as a
  /// busy one still speaks. A cable that is out for 3 s comes back within it (ADR 18).
  double silence = 8;
  bool operator==(const Limits&) const = default;
};

/// Of `phase`; none when it may last for ever.
std::optional<double> limit_of(const Limits& limits, Phase phase);

/// "start=600,step=60": the others keep their values. None when `text` breaks kLimitsRule.
std::optional<Limits> limits_from(const std::string& text);
inline constexpr const char* kLimitsRule =
    "PHASE=SECONDS,... with phases of start, step, eval, save and silence, and seconds from 2 up, "
    "or 0 for none";

/// "start=600,step=300,eval=300,save=600,silence=8"
std::string to_string(const Limits& limits);

}  // namespace tj::trainer
