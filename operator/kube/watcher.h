// List and watch as an explicit state machine without I/O: it is told what happened and says what to do next.
// States: empty -> listing (pages) -> watching -> ... ; a 410 goes back to empty; every failure waits with backoff.
// After kube-rs' runtime watcher; semantics in Kubernetes' "Efficient detection of changes".
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/result.h"

namespace tj {

/// What the driver must do. Exactly one is outstanding at a time.
struct StartList { std::string continue_token; bool operator==(const StartList&) const = default; };
struct StartWatch { std::string resource_version; bool operator==(const StartWatch&) const = default; };
struct WaitThenStep { std::chrono::milliseconds delay{0}; bool operator==(const WaitThenStep&) const = default; };
using WatchCommand = std::variant<StartList, StartWatch, WaitThenStep>;

/// What the cache must learn. `objects` and `object` are JSON texts.
struct Replace { std::vector<std::string> objects; std::string resource_version; bool operator==(const Replace&) const = default; };
struct Upsert { std::string object; bool operator==(const Upsert&) const = default; };
struct Erase { std::string object; bool operator==(const Erase&) const = default; };
using WatchDelta = std::variant<Replace, Upsert, Erase>;

struct WatchStep {
  std::vector<WatchDelta> deltas;
  std::optional<WatchCommand> command;  // absent: keep reading the stream that is open
  std::string relist_reason;            // set when a watch had to start over: "gone", "error", ...; a metric's label
};

class Watcher {
 public:
  static constexpr std::chrono::milliseconds kBackoffMin{200};
  static constexpr std::chrono::milliseconds kBackoffMax{30'000};

  /// `jitter_seed` spreads the backoff of many watchers.
  explicit Watcher(unsigned jitter_seed = 0) : jitter_state_(jitter_seed) {}

  WatchStep start();                                 // once
  WatchStep on_list(const Result<std::string>& page); // the answer to StartList
  WatchStep on_line(const std::string& line);        // a line of the stream opened by StartWatch
  WatchStep on_watch_end(const Result<void>& end);   // the stream ended
  WatchStep on_waited();                             // the delay of WaitThenStep is over

  /// True once a first list was complete: the cache may be believed.
  bool synced() const { return synced_; }
  const std::string& resource_version() const { return resource_version_; }

 private:
  enum class State { empty, listing, watching };
  WatchStep fail(State next, std::string reason);

  State state_ = State::empty;
  std::string resource_version_;
  std::vector<std::string> pages_;  // objects of a list in progress: the old cache stays until it is complete
  std::chrono::milliseconds backoff_{kBackoffMin};
  bool synced_ = false;
  unsigned jitter_state_;
};

}  // namespace tj
