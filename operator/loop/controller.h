// The controller: watches -> caches -> queue -> plan() -> apply. One thread, the io_context's,
// decides. The same class serves a cluster (over RestKubeApi) and `tj run` (over MemoryApi).
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "operator/api/types.h"
#include "operator/kube/kube_api.h"
#include "operator/loop/lease.h"
#include "operator/plan/plan.h"

namespace tj {

class Metrics;         // loop/metrics.h
class ProgressSource;  // loop/progress_source.h

struct ControllerOptions {
  std::string ns;                      // only this namespace; empty: all
  int requests_in_flight_max = 32;     // of one job's creations and deletions
  bool watch_nodes = true;             // while a job needs to know of them
  std::function<TimePoint()> now;      // the wall clock; tests turn it by hand
  ProgressSource* progress = nullptr;  // asked of running jobs by who acts; absent: nobody is asked
  std::string operator_ns;  // jobs' network policies let operators in from here; empty: nowhere
  std::function<Plan(const Observed&)> decide = plan;  // a test's own may have a bug
  // What all waiting is measured with; whoever turns it by hand calls `wake` after each turn.
  std::function<std::chrono::steady_clock::time_point()> steady_now =
      std::chrono::steady_clock::now;
  // Follows until it holds this Lease, with warm caches, and changes nothing; absent: acts at once.
  std::optional<LeaseTarget> lease;
  // Nothing is sent any more when this is called: the process must end. Set where `lease` is.
  std::function<void(const std::string& reason)> on_lease_lost;
};

class Controller {
 public:
  Controller(boost::asio::io_context& loop, KubeApi& api, Metrics& metrics,
             ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void start();
  /// No new request starts after this; those in flight end on their own. Then the lease is given
  /// back.
  void stop();
  /// All first lists are complete. Nothing is decided before.
  bool synced() const;
  /// Why the controller can't do its work now, for /readyz; empty: it can, or could if it led.
  std::string not_ready_reason() const;
  /// Answers still to come: after `stop`, what an orderly end waits for.
  std::size_t requests_in_flight() const;

  /// Does whatever is due. Only needed where `steady_now` is turned by hand.
  void wake();
  std::optional<std::chrono::steady_clock::time_point> next_wake() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj
