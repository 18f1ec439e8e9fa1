// The one sentence on why the ranks can't go on, in the store where all find it. Whoever comes
// first decides; ranks that end in its wake look just as lost to their neighbours.
#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tj::trainer {

/// So long rank 0 keeps the store open for those who have not yet heard.
inline constexpr std::chrono::milliseconds kHearMax{2000};

struct PeerFailure {
  int rank = -1;        // to blame; -1: no single one is known
  std::string reason;   // of the outcome of that rank: "Hung", "BadData", ...
  std::string message;  // "rank 2 on node b was lost, in phase step after step 12"
  int absent = -1;      // is gone or frozen and can't hear of it; -1: none is known to be
  bool operator==(const PeerFailure&) const = default;
};

/// The failure as this process knows it, whichever of its threads has heard it: once a rank has
/// acknowledged it, rank 0 may close the store, and threads that ask later find it only here.
class KnownPeerFailure {
 public:
  KnownPeerFailure(int rank, int world_size) : rank_(rank), world_size_(world_size) {}

  /// Returns what is settled: `mine`, or that of an earlier one. Throws what the store throws.
  PeerFailure settle(c10d::Store& store, const PeerFailure& mine);
  /// What is settled, if anything. Throws what the store throws, unless it is known already.
  std::optional<PeerFailure> ask(c10d::Store& store);
  /// Without the store.
  std::optional<PeerFailure> known() const;
  /// Tells in the store that this rank knows. Rank 0, which carries the store, returns once all
  /// others that can hear do, or after kHearMax. Throws what the store throws.
  void acknowledge(c10d::Store& store);

 private:
  PeerFailure remember(const PeerFailure& failure);

  const int rank_;
  const int world_size_;
  mutable std::mutex mutex_;  // guards the one below
  std::optional<PeerFailure> known_;
};

}  // namespace tj::trainer
