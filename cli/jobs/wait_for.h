// `tj wait`: until a job is in a phase, has a condition, or is gone.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "cli/jobs/job_text.h"
#include "cli/jobs/place.h"
#include "cli/jobs/show.h"

namespace tj {

struct WaitGoal {
  enum class Kind { end, phase, condition, deletion };
  Kind kind = Kind::end;
  Phase phase = Phase::succeeded;  // of Kind::phase
  std::string condition;           // of Kind::condition: its type, as the status has it
  bool condition_status = true;
  bool operator==(const WaitGoal&) const = default;
};

/// "" (its end), "phase=Running", "condition=Suspended", "condition=Running=False", "delete"; upper
/// and lower case are one.
Result<WaitGoal> parse_wait_goal(const std::string& text);
/// "90", "90s", "5m", "1h30m": more than nothing, at most a year.
Result<std::chrono::seconds> parse_duration(const std::string& text);

enum class WaitVerdict { not_yet, reached, never };
/// Of a job that is there. A job that has succeeded has been in the phases Starting and Running.
WaitVerdict judge_wait(const WaitGoal& goal, const JobView& view);

struct WaitOptions {
  std::string job;
  WaitGoal goal;
  std::optional<std::chrono::seconds> timeout;  // absent: for ever
  FollowPace pace;
};
/// 0: reached (of the end: it has succeeded); 1: it can't be any more; 124: not within the timeout.
int wait_for(Place& place, const WaitOptions& options);

}  // namespace tj
