// Which job is looked at next, and when. Pure: time is passed in, one timer outside drives it.
// A key is with at most one worker; what is added meanwhile runs once more afterwards. Failures of
// a key double its wait; adding it because something changed does not wait.
// A namespace takes a worker only while it has fewer than are free: one alone gets half of them,
// and however slow its requests are (an admission webhook of its own, say), others have the rest.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "operator/api/types.h"

namespace tj {

using SteadyTime = std::chrono::steady_clock::time_point;

class WorkQueue {
 public:
  static constexpr std::chrono::milliseconds kBackoffMin{5};
  static constexpr std::chrono::milliseconds kBackoffMax{60'000};
  static constexpr std::size_t kKeysMax = 100'000;
  static constexpr std::size_t kInWorkMax = 32;

  explicit WorkQueue(std::size_t keys_max = kKeysMax) : keys_max_(keys_max) {}

  /// Due at `at`; a key that waits already keeps the earlier time. A key beyond the bound is not
  /// taken: `take_overflow` then says that everything must be added again.
  void add(const ObjectKey& key, SteadyTime at);
  /// The key that has been due longest of those that may have a worker; it has one until
  /// `succeeded` or `failed`.
  std::optional<ObjectKey> pop(SteadyTime now);
  /// The worker has finished well: the next failure waits the shortest time again.
  void succeeded(const ObjectKey& key);
  /// The worker has failed: due again after the key's backoff, and not before `delay_min`.
  /// Returns the wait.
  std::chrono::milliseconds failed(const ObjectKey& key, SteadyTime now,
                                   std::chrono::milliseconds delay_min = {});

  /// When `pop` would give the next key, unless a worker finishes before.
  std::optional<SteadyTime> next_due() const;
  /// Keys that wait, due or not.
  std::size_t depth() const { return entries_.size() - in_work_; }
  /// True once after keys were turned away and half of the room is free again.
  bool take_overflow();

 private:
  struct Entry {
    std::optional<SteadyTime> due;    // waits until then
    std::optional<SteadyTime> again;  // in work, and to be queued afterwards
    bool in_work = false;
    int failure_count = 0;
  };
  using Entries = std::map<ObjectKey, Entry>;
  struct Namespace {
    std::set<std::pair<SteadyTime, ObjectKey>> waiting;
    std::size_t in_work = 0;
  };
  using Namespaces = std::map<std::string, Namespace>;
  Namespaces::const_iterator next_namespace() const;
  void finish(Entries::iterator found);

  std::size_t keys_max_;
  std::size_t in_work_ = 0;
  bool overflowed_ = false;
  Entries entries_;
  Namespaces namespaces_;  // those with an entry
};

}  // namespace tj
