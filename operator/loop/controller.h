// The controller: watches -> caches -> queue -> plan() -> apply. One thread, the io_context's,
// decides. The same class serves a cluster (over RestKubeApi) and `tj run` (over MemoryApi).
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "operator/api/types.h"
#include "operator/kube/kube_api.h"

namespace tj {

class Metrics;  // loop/metrics.h

struct ControllerOptions {
  std::string ns;                   // only this namespace; empty: all
  int requests_in_flight_max = 16;  // of one job's creations and deletions
  std::function<TimePoint()> now;   // the wall clock; tests turn it by hand
};

class Controller {
 public:
  Controller(boost::asio::io_context& loop, KubeApi& api, Metrics& metrics,
             ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void start();
  /// No new request starts after this; those in flight end on their own.
  void stop();
  /// All first lists are complete: what /readyz answers.
  bool synced() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj
