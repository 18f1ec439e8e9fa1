// List and watch as an explicit state machine without I/O: it is told what happened and says what
// to do next. After kube-rs' runtime watcher and client-go's reflector; semantics in Kubernetes'
// "Efficient detection of changes".
//
//   listing -> (last page) -> watching -> (orderly end) -> watching from the last version
//   410, wherever it is said     -> listing, the cache stays until the new list is complete
//   a stream that fails          -> wait, watching from the last version; too often: listing
//   a list or a line that is bad -> wait, listing
//   a line older than the last   -> wait, listing: the server's etcd was restored
#pragma once
#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/result.h"

namespace tj {

/// What the driver must do. Exactly one is outstanding at a time; a command that comes while a
/// stream is open means: drop that stream.
struct StartList {
  std::string continue_token;
  bool operator==(const StartList&) const = default;
};
struct StartWatch {
  std::string resource_version;
  bool operator==(const StartWatch&) const = default;
};
struct WaitThenStep {
  std::chrono::milliseconds delay{0};
  bool operator==(const WaitThenStep&) const = default;
};
using WatchCommand = std::variant<StartList, StartWatch, WaitThenStep>;

// What the cache must learn. `objects` and `object` are JSON texts, without managedFields.

/// A page of a list. What the list does not name is no more, which is known with its last page.
struct Replace {
  std::vector<std::string> objects;
  std::string resource_version;  // empty: more pages follow
  bool continues = false;        // the page before
  bool operator==(const Replace&) const = default;
};
struct Upsert {
  std::shared_ptr<const nlohmann::json> object;
  bool operator==(const Upsert& other) const;
};
struct Erase {
  std::shared_ptr<const nlohmann::json> object;
  bool operator==(const Erase& other) const;
};
using WatchDelta = std::variant<Replace, Upsert, Erase>;

struct WatchStep {
  std::vector<WatchDelta> deltas;
  std::optional<WatchCommand> command;  // absent: keep reading the stream that is open
  std::string relist_reason;  // set when a list has to start over: "gone", "error", "malformed",
                              // "went_back"; a metric's label
};

class Watcher {
 public:
  static constexpr std::chrono::milliseconds kBackoffMin{200};
  static constexpr std::chrono::milliseconds kBackoffMax{30'000};
  /// A server's own wish (Retry-After) is granted up to here.
  static constexpr std::chrono::milliseconds kRetryAfterMax{120'000};
  /// Two streams in a row that end in order without a line: a proxy that hangs up must not make us
  /// spin, and a quiet resource loses nothing by this wait.
  static constexpr std::chrono::milliseconds kQuietWait{1'000};
  /// Streams that fail one after the other without a line; then the version itself is suspected.
  static constexpr int kResumesMax = 5;
  /// Of one list; a continue token that leads in a circle ends here.
  static constexpr int kPagesMax = 10'000;

  /// `jitter_seed` spreads the backoff of many watchers.
  explicit Watcher(unsigned jitter_seed = 0) : jitter_state_(jitter_seed) {}

  WatchStep start();                                   // once
  WatchStep on_list(const Result<std::string>& page);  // the answer to StartList
  WatchStep on_line(const std::string& line);          // a line of the stream of StartWatch
  WatchStep on_watch_end(const Result<void>& end);     // the stream ended
  WatchStep on_waited();                               // the delay of WaitThenStep is over

  /// True once a first list was complete: the cache may be believed.
  bool synced() const { return synced_; }
  const std::string& resource_version() const { return resource_version_; }

 private:
  enum class State { listing, watching, waiting_to_list, waiting_to_watch };

  WatchStep list_from_start();
  WatchStep watch_from_last();
  WatchStep wait(State next, const Error& error, std::string relist_reason);
  WatchStep relist_gone();
  WatchStep resume(const Error& error);
  WatchStep on_error_event(const std::string& line);
  void made_progress();
  std::chrono::milliseconds next_delay(const Error& error);

  State state_ = State::listing;
  std::string resource_version_;
  int pages_ = 0;  // of the list in progress
  std::chrono::milliseconds backoff_{kBackoffMin};
  int resumes_ = 0;          // streams that failed since the last line
  bool line_seen_ = true;    // by the open stream
  bool last_quiet_ = false;  // the stream before ended in order without a line
  bool synced_ = false;
  unsigned jitter_state_;
};

}  // namespace tj
