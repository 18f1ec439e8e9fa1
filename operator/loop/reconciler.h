// One pass over one job: what is observed -> plan() -> what the plan says, in an order that may be
// broken off anywhere. A verdict is in the status before anything is deleted because of it; the
// status that counts workers comes after their creation; events come after the status.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "operator/loop/alarm.h"
#include "operator/loop/apply.h"
#include "operator/loop/creation_gate.h"
#include "operator/loop/event_outbox.h"
#include "operator/loop/log_gate.h"
#include "operator/loop/metrics.h"
#include "operator/loop/pod_news.h"
#include "operator/loop/progress_poller.h"
#include "operator/loop/status_pace.h"
#include "operator/loop/status_writer.h"
#include "operator/loop/view.h"
#include "operator/plan/plan.h"

namespace tj {

/// `settled`: nothing is left to do until something changes, or until `requeue_after`.
struct PassOutcome {
  bool settled = true;
  std::chrono::milliseconds retry_after{0};                // not settled: the server's Retry-After
  std::optional<std::chrono::milliseconds> requeue_after;  // settled, for now
  std::optional<Resource> stale;  // this cache is behind the server, provably
};

struct ReconcilerOptions {
  int requests_in_flight_max = 1;                  // of one job's creations and deletions
  std::function<TimePoint()> now;                  // the wall clock
  std::function<void(const ObjectKey& key)> wake;  // something is known of a job that was not
  ProgressSource* progress = nullptr;              // absent: nobody is asked
  std::string operator_ns;                         // as in ControllerOptions
  std::function<Plan(const Observed&)> decide = plan;
};

class Reconciler {
 public:
  /// To decide about a gang of a thousand takes milliseconds, and each of its pods is news. What
  /// is decided about a job may take one part in so many of the time.
  static constexpr int kDecisionShare = 50;
  /// Gangs that are created side by side keep the requests in flight busy so many times.
  static constexpr int kGateFactor = 4;

  using Done = std::function<void(PassOutcome)>;
  Reconciler(KubeApi& api, View& view, Alarm& alarm, Metrics& metrics, ReconcilerOptions options);

  /// At most one pass of a key at a time.
  void reconcile(const ObjectKey& key, Done done);
  /// A pass before would spend too much of the time on this job.
  SteadyTime next_decision(const ObjectKey& key) const;
  /// Of no job is asked any more how it is doing.
  void stop() { poller_.stop(); }
  /// Jobs whose rank 0 is asked how it is doing.
  std::size_t asked_count() const { return poller_.asked_count(); }

 private:
  /// What may be lost at any time, at the cost of a request or a line in the log.
  struct Memory {
    std::string uid;
    bool has_begun = false;
    std::optional<std::string> create_error;
    Refusal refusal = Refusal::denied;
    SteadyTime next_decision{};
    StatusPace::Job pace;
    std::optional<std::string> network_policy_hash;
    std::optional<TimePoint> awaits_cause_since;
    LogGate error_log;
  };
  struct Pass {
    TrainingJob job;
    Plan plan;
    PassOutcome outcome;
    Done done;
  };

  /// Runs a step of a pass. What it throws is a bug of ours, and costs this job alone: its status
  /// says so, and it is looked at again, each time later.
  template <typename Step>
  void guard(ObjectKey key, Done done, Step step);
  void end_after_bug(const ObjectKey& key, const Done& done, const std::string& bug);
  void begin(Pass pass);
  void created(Pass pass, const ApplyOutcome& outcome);
  void removed(Pass pass, const ApplyOutcome& outcome);

  Memory& memory_of(const TrainingJob& job);
  Plan decide(const TrainingJob& job);
  Plan plan_from_view(const TrainingJob& job);
  void create_children(Pass pass);
  void write_status(Pass pass);
  void status_written(Pass pass, StatusChange change, const StatusOutcome& status);
  void remove_children(Pass pass);
  void ask_for_news(const Pass& pass);
  void announce(const Pass& pass);
  void log_error(const TrainingJob& job, const std::string& error);

  View& view_;
  Alarm& alarm_;
  Metrics& metrics_;
  ReconcilerOptions options_;
  Applier applier_;
  StatusWriter status_writer_;
  EventOutbox events_;
  PodNewsReader news_;
  ProgressPoller poller_;
  StatusPace pace_;
  CreationGate gate_;
  std::map<ObjectKey, Memory> memory_;  // of jobs that are in the View
};

}  // namespace tj
