// Ends a run that would otherwise wait for ever. Each rank tells the others four times a second
// what its training thread does; rank 0 judges, and what is settled ends every process within three
// seconds, with the first cause. pytorch#97191: a watchdog must end the process itself, after a
// bounded look.
#pragma once
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "contract/progress.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"
#include "trainer/watch/limits.h"
#include "trainer/watch/peer_failure.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

struct WatchRequest {
  PhaseClock& clock;  // must outlive the watchdog
  Limits limits;
  /// Called before the watchdog ends the process, on a thread of its own, and not waited for long.
  std::function<void(const Failure&)> write_down;
};

class Watchdog {
 public:
  struct Peer {
    std::string node;
    int pid = 0;  // 0: on another machine
  };
  /// Call it on the training thread. `store` is that of the meeting, of which it takes a connection
  /// of its own; `peers` by rank; `peer_failure` is shared with whoever else hears why all must
  /// end.
  Watchdog(const ProcessEnv& env, const WatchRequest& request, c10d::Store& store,
           std::vector<Peer> peers, std::shared_ptr<KnownPeerFailure> peer_failure);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// This rank ends by a failure of its own that the others have not heard of: they end with it.
  /// Returns once it may close its sockets, at most kHearMax later; where the store does not answer
  /// it ends the process itself, with that failure.
  void tell(const Failure& failure) noexcept;
  /// From here on it ends nothing. Call it before the ranks part, and before a last word is said.
  void stop() noexcept;
  /// The ranks that do not move, as rank 0 sees them: for the progress document.
  std::vector<StalledRank> stalled() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj::trainer
