// Carries out what a Watcher (kube/watcher.h) commands over a KubeApi: lists, watches, waits. What
// it learns goes to `on_delta`; what is wrong with the connection to `on_problem`.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/kube/watcher.h"
#include "operator/loop/alarm.h"

namespace tj {

struct WatchTarget {
  Resource resource = Resource::pods;
  std::string ns;  // empty: all
  std::string label_selector;
};

struct WatchEvents {
  std::function<void(const WatchDelta& delta)> on_delta;
  std::function<void(const std::string& reason)> on_relist;
  /// Absent: it works again.
  std::function<void(const std::optional<Error>& problem)> on_problem;
};

class WatchDriver {
 public:
  /// A stream that has not failed for so long is taken to work, though it may have said nothing.
  static constexpr std::chrono::milliseconds kQuietIsFine{5'000};

  WatchDriver(KubeApi& api, Alarm& alarm, WatchTarget target, WatchEvents events);

  void start();
  /// Nothing is learnt after this.
  void stop();
  /// What the stream has said is provably not all: list again.
  void distrust();
  bool synced() const { return watcher_.synced(); }
  Resource resource() const { return target_.resource; }

 private:
  void take(const WatchStep& step);
  void carry_out(const WatchCommand& command);
  void list(const std::string& continue_token);
  void watch(const std::string& resource_version);
  void wait(std::chrono::milliseconds delay);
  void stream_ended(const Result<void>& end);
  void retire_stream();
  /// Whether the command that is carried out now still counts, asked later.
  std::function<bool()> is_current() const;
  std::string slot(const char* purpose) const;

  KubeApi& api_;
  Alarm& alarm_;
  WatchTarget target_;
  WatchEvents events_;
  Watcher watcher_;
  std::unique_ptr<WatchStream> stream_;
  std::vector<std::unique_ptr<WatchStream>> retired_;  // emptied in the next turn of the loop
  // Counts the commands: an answer to an earlier one is not listened to.
  unsigned long long turn_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
