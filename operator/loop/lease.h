// Which of several operators acts, by a Lease of coordination.k8s.io/v1: an explicit state machine
// without I/O, told what happened, that says what to do next. The meaning is client-go's
// (tools/leaderelection), so that any reader of the Lease understands it (docs/adr/0009).
//
//   looking -> free, ours, or unchanged for its duration by OUR clock -> writing -> ok -> leading
//   looking -> somebody else's                                        -> wait, look
//   leading -> each retry period a write at the version last seen; a conflict or an answer that
//              did not come means: look
//   leading -> another holder, or no write for the renew deadline     -> over, for good
//
// Wall clocks are written for people and never compared: those of two machines may differ.
#pragma once
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <variant>

#include "contract/result.h"
#include "operator/api/types.h"
#include "operator/loop/work_queue.h"

namespace tj {

/// Others wait so long after the last change they saw; the leader stops acting so long after it
/// sent the last write that succeeded; the least time between two writes, and between two looks.
inline constexpr std::chrono::milliseconds kLeaseDuration{15'000};
inline constexpr std::chrono::milliseconds kRenewDeadline{10'000};
inline constexpr std::chrono::milliseconds kLeaseRetry{2'000};
/// Added to a follower's wait, at random: two of them seldom meet.
inline constexpr std::chrono::milliseconds kLeaseJitterMax{400};
inline constexpr std::chrono::milliseconds kLeaseRequestDeadline{5'000};
/// What another leader may promise itself in the record, at most.
inline constexpr std::chrono::seconds kForeignDurationMax{300};

static_assert(kLeaseRetry + kLeaseRequestDeadline + kLeaseRetry < kRenewDeadline,
              "one answer that never comes does not cost the lease");
static_assert(kRenewDeadline + kLeaseRetry < kLeaseDuration,
              "the old leader has stopped, with time to spare, before another one starts");
static_assert(kLeaseDuration + 2 * (kLeaseRetry + kLeaseJitterMax) < std::chrono::seconds{20},
              "a dead leader is followed within 20 s");

struct LeaseTarget {
  std::string ns;
  std::string name;
  std::string identity;  // of this process, never used before
};

/// `wall` is only written into the record.
struct Moment {
  SteadyTime steady;
  TimePoint wall;
};

struct LookAtLease {
  bool operator==(const LookAtLease&) const = default;
};
struct WriteLease {
  bool is_new = false;  // create, else replace
  std::string body;
  bool operator==(const WriteLease&) const = default;
};
struct WaitForLease {
  std::chrono::milliseconds delay{0};
  bool operator==(const WaitForLease&) const = default;
};
/// Carried out at once, one at a time; its end is told by `on_look`, `on_written`, `on_waited`.
using LeaseCommand = std::variant<LookAtLease, WriteLease, WaitForLease>;

class LeaderLease {
 public:
  explicit LeaderLease(LeaseTarget target);

  // Without a command it is over: see `lost_reason`.
  std::optional<LeaseCommand> start(SteadyTime now);  // once
  std::optional<LeaseCommand> on_look(const Result<std::string>& answer, Moment now);
  std::optional<LeaseCommand> on_written(const Result<std::string>& answer, Moment now);
  std::optional<LeaseCommand> on_waited(Moment now);
  /// Instead of a next step: a write that lets another one take over at once. Nothing to write
  /// where we do not lead.
  std::optional<LeaseCommand> release(Moment now);

  /// Whether we may act now.
  bool leads(SteadyTime now) const { return leads_until_ && now < *leads_until_; }
  /// When acting ends unless a write succeeds before; absent while following.
  std::optional<SteadyTime> leads_until() const { return leads_until_; }
  /// To be called when `leads_until` has come: it may be over then.
  void check(SteadyTime now);
  /// Why we lead no more; absent: we never did, or still do.
  const std::optional<std::string>& lost_reason() const { return lost_reason_; }
  /// Who had it when we looked last; empty: nobody.
  const std::string& holder() const { return record_.holder; }

 private:
  enum class Next { look, write };
  /// The Lease as last seen.
  struct Record {
    std::string object;  // JSON; empty: there is none
    std::string spec;
    std::string holder;
    std::chrono::milliseconds duration{0};
    SteadyTime seen{};  // when we saw this spec first
  };

  Result<void> learn(const Result<std::string>& answer, SteadyTime now);
  bool is_free(SteadyTime now) const;
  LeaseCommand look(SteadyTime now);
  LeaseCommand write(Moment now);
  LeaseCommand wait_until(SteadyTime at, SteadyTime now, Next next);
  std::optional<LeaseCommand> failed(const Error& error, SteadyTime sent, SteadyTime now);
  std::string body(const std::string& holder, TimePoint now) const;
  std::chrono::milliseconds jitter();
  void lose(std::string reason);

  LeaseTarget target_;
  Record record_;
  Next next_ = Next::look;  // after a wait
  SteadyTime look_sent_{};
  std::optional<SteadyTime> write_sent_;
  std::optional<SteadyTime> leads_until_;
  std::optional<std::string> lost_reason_;
  std::string last_error_;
  std::minstd_rand random_;
};

}  // namespace tj
