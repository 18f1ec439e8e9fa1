// When a status that has changed is written. What an action waits for goes at once. All else is
// told late rather than early, and in turn: while workers are being created the API server is
// needed for those, and a patch of a status costs it as much as two pods. No I/O; time is passed
// in.
#pragma once
#include <chrono>
#include <functional>
#include <optional>

#include "operator/api/types.h"
#include "operator/loop/work_queue.h"

namespace tj {

/// True if the two would be written as the same JSON.
bool is_same_status(const JobStatus& left, const JobStatus& right);

/// What has changed in a status, the weightiest of it. verdict: an action follows from it. phase:
/// what people and programs wait for. coming_up: the gang is on its way, and nothing is wrong.
/// success: ranks have succeeded, whose pods may go at any time. progress: the run has come
/// further; how often that is told, plan/ has decided. counts: of workers, and who is behind just
/// now.
enum class StatusChange { none, verdict, phase, coming_up, success, progress, counts };

/// `has_consequence`: an action follows from what is new.
StatusChange change_between(const JobStatus& before, const JobStatus& after, bool has_consequence);

class StatusPace {
 public:
  /// Between two writes of any jobs.
  static constexpr std::chrono::milliseconds kTurn{100};
  /// Of one job: between counts, doubled with each write that tells nothing else, so that a gang of
  /// a thousand that comes up over an hour costs a dozen writes.
  static constexpr std::chrono::milliseconds kIntervalMin{4'000};
  static constexpr std::chrono::milliseconds kIntervalMax{60'000};
  /// Most gangs have come up by then, and one write says it all.
  static constexpr std::chrono::milliseconds kComingUpMax{2'000};
  static constexpr std::chrono::milliseconds kSuccessInterval{1'000};
  /// Behind workers that are being created, or brought up after that, it waits no longer than this,
  /// and asks again so often.
  static constexpr std::chrono::milliseconds kBehindCreationsMax{10'000};
  static constexpr std::chrono::milliseconds kLookAgain{1'000};

  /// What is kept of one job.
  struct Job {
    std::optional<SteadyTime> written;
    std::optional<SteadyTime> changed_since;  // and not written yet
    std::optional<SteadyTime> turn;
    std::chrono::milliseconds interval{kIntervalMin};
  };

  /// Since when workers have been created without a pause; absent: none are.
  using CreatingSince = std::function<std::optional<SteadyTime>()>;
  explicit StatusPace(CreatingSince creating_since) : creating_since_(std::move(creating_since)) {}

  /// Zero: write it now. Else: ask again after that.
  std::chrono::milliseconds wait(Job& job, StatusChange change, SteadyTime now);
  void written(Job& job, StatusChange change, SteadyTime now);

 private:
  bool is_busy(SteadyTime now);

  CreatingSince creating_since_;
  SteadyTime busy_since_{};
  SteadyTime busy_until_{};
  SteadyTime next_turn_{};
};

}  // namespace tj
