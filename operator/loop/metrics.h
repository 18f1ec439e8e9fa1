// What Prometheus is told. Names follow https://prometheus.io/docs/practices/naming/; no label
// holds a job's name, so that the number of series has a bound.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/api/types.h"
#include "operator/kube/kube_api.h"
#include "operator/loop/progress_source.h"

namespace tj {

/// What is counted afresh for each scrape, rather than at each change.
struct Gauges {
  std::map<Phase, std::size_t> jobs_by_phase;
  std::map<Resource, std::size_t> cached_objects;
  std::size_t stuck_terminating = 0;
  std::size_t queue_depth = 0;
  std::size_t asked_jobs = 0;
  bool is_leader = false;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// `code` is the HTTP status, or "timeout", "unavailable", ... where there was none.
  void count_request(Verb verb, Resource resource, const std::string& code);
  /// How a question to a rank 0 ended.
  void count_poll(PollResult result);
  void count_watch_restart(Resource resource, const std::string& reason);
  void observe_reconcile(std::chrono::duration<double> seconds);
  /// A job's status was written: restarts and start times are read off the difference.
  void count_status(const JobStatus& before, const JobStatus& after);

  /// Asked for at each scrape; empty: the gauges keep their last values.
  void set_gauge_source(std::function<Gauges()> source);
  /// All series in the text exposition format.
  std::string text();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj
