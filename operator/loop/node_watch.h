// Watches the cluster's nodes, but only while somebody needs to know of them: it begins with the
// first need and ends some time after the last. Without the right to do so work goes on: jobs then
// don't notice dead nodes, and the log says so once.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "operator/kube/kube_api.h"
#include "operator/loop/alarm.h"
#include "operator/loop/watch_driver.h"

namespace tj {

class NodeWatch {
 public:
  /// A gang restart has no active worker for a moment; nodes are not listed anew for that.
  static constexpr std::chrono::seconds kLinger{60};
  /// A refused watch is tried again after that: a permission may come.
  static constexpr std::chrono::minutes kRefusedRetry{10};

  struct Events {
    std::function<void(const WatchDelta& delta)> on_delta;
    std::function<void(const std::string& reason)> on_relist;
    std::function<void()> on_end;  // what was learnt grows old from now on
  };

  NodeWatch(KubeApi& api, Alarm& alarm, Events events)
      : api_(api), alarm_(alarm), events_(std::move(events)) {}

  /// May be called as often as one likes; nothing happens inside the call but in later turns.
  void set_needed(bool is_needed);
  void stop();
  bool is_running() const { return driver_ != nullptr; }

 private:
  void start();
  void end();
  void on_problem(const std::optional<Error>& problem);

  KubeApi& api_;
  Alarm& alarm_;
  Events events_;
  std::unique_ptr<WatchDriver> driver_;
  bool is_needed_ = false;
  std::optional<SteadyTime> refused_until_;
  bool refusal_is_logged_ = false;
};

}  // namespace tj
