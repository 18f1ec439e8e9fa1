// Writes a job's status through the subresource: only if it differs, guarded by the resourceVersion
// that the decision was made from, and never blindly again after a conflict.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/loop/view.h"
#include "operator/loop/work_queue.h"

namespace tj {

enum class StatusResult {
  unchanged,
  written,
  job_gone,  // says the server
  outdated,  // somebody else wrote first: decide again, from what the View knows now
  failed,    // try again later
};

struct StatusOutcome {
  StatusResult result = StatusResult::failed;
  std::chrono::milliseconds retry_after{0};  // its Retry-After
  std::string trouble;                       // for the log
};

/// True if the two would be written as the same JSON.
bool is_same_status(const JobStatus& left, const JobStatus& right);

/// A change that people and programs wait for, as opposed to counts that move and to who is behind
/// just now.
bool is_urgent_change(const JobStatus& before, const JobStatus& after);

/// The run has come further. How often that is written, plan/ has decided.
bool is_progress(const JobStatus& before, const JobStatus& after);

/// When counts that move may be written: at once, and then after a wait that doubles with each such
/// write, so that a gang of a thousand that comes up over an hour costs a dozen writes. Pure.
class CountsPace {
 public:
  static constexpr std::chrono::milliseconds kIntervalMin{1'000};
  static constexpr std::chrono::milliseconds kIntervalMax{60'000};

  /// For so long after a write pods of other jobs go first.
  static constexpr std::chrono::milliseconds kBesideCreationsMax{10'000};
  static constexpr std::chrono::milliseconds kLookAgain{1'000};

  /// Zero: now.
  std::chrono::milliseconds wait(SteadyTime now) const;
  /// Zero: though others create pods. Else until it is worth while to ask again.
  std::chrono::milliseconds wait_beside_creations(SteadyTime now) const;
  void written(bool was_urgent, SteadyTime now);

 private:
  std::optional<SteadyTime> written_;
  std::chrono::milliseconds interval_{kIntervalMin};
};

class StatusWriter {
 public:
  using Done = std::function<void(StatusOutcome)>;

  StatusWriter(KubeApi& api, View& view) : api_(api), view_(view) {}
  void write(const TrainingJob& job, const JobStatus& status, Done done);

 private:
  void look_again(const TrainingJob& job, const JobStatus& status, const Error& why, Done done);

  KubeApi& api_;
  View& view_;
};

}  // namespace tj
