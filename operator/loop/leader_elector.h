// Carries out what LeaderLease (lease.h) says: its requests, its waits, and the end at the very
// moment when the lease can't be counted on any more.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "operator/loop/alarm.h"
#include "operator/loop/lease.h"
#include "operator/loop/log_gate.h"
#include "operator/loop/tracked_api.h"

namespace tj {

struct ElectionEvents {
  std::function<void()> on_leading;                        // at most once
  std::function<void(const std::string& reason)> on_lost;  // at most once, after `on_leading`
};

class LeaderElector {
 public:
  using WallClock = std::function<TimePoint()>;
  LeaderElector(KubeApi& api, Alarm& alarm, LeaseTarget target, WallClock wall,
                ElectionEvents events);

  /// Stands for election; more than once is nothing new.
  void start();
  /// Asked before each write of the controller: a thread that slept through the deadline must not
  /// act before it has seen the alarm.
  bool leads() const { return lease_.leads(alarm_.now()); }
  /// Ends the election; a leader gives the lease back, once the answer to its last write is there.
  void release();
  /// Why the lease can't be looked at or written; absent: it can.
  const std::optional<Error>& problem() const { return problem_; }
  std::size_t requests_in_flight() const { return api_.in_flight(); }

 private:
  enum class Phase { idle, running, releasing, over };

  void take(std::optional<LeaseCommand> command);
  void lead(SteadyTime until);
  void carry_out(const LookAtLease& look);
  void carry_out(const WriteLease& write);
  void carry_out(const WaitForLease& wait);
  void send(Request request, std::function<void(const Result<std::string>&)> done);
  void note_problem(const Result<std::string>& answer);
  void note_holder();
  std::string name() const { return target_.ns + "/" + target_.name; }
  Moment moment() const { return {alarm_.now(), wall_()}; }

  TrackedApi api_;
  Alarm& alarm_;
  LeaseTarget target_;
  WallClock wall_;
  ElectionEvents events_;
  LeaderLease lease_;
  Phase phase_ = Phase::idle;
  bool is_leading_ = false;  // as announced
  std::string logged_holder_;
  std::optional<Error> problem_;
  LogGate problem_log_;
};

}  // namespace tj
