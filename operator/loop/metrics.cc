#include "operator/loop/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include "operator/api/words.h"

namespace tj {
namespace {

// A reconcile that changes nothing takes microseconds, one that creates 1,000 pods some seconds.
const prometheus::Histogram::BucketBoundaries kReconcileBuckets{0.0001, 0.001, 0.01, 0.1, 0.5,
                                                                1,      5,     15,   60};
// From workers whose image is there to those that wait for a node to be bought.
const prometheus::Histogram::BucketBoundaries kStartBuckets{1,  2,   5,   10,  20,   30,
                                                            60, 120, 300, 600, 1800, 3600};

/// What ended a failed job: a worker of its last attempt, or else what its reason says.
std::string cause_of_end(const JobStatus& status) {
  const bool a_worker_did = status.first_failure && status.first_failure->attempt == status.attempt;
  return a_worker_did ? to_string(status.first_failure->cause) : status.reason;
}

}  // namespace

class Metrics::Impl {
 public:
  // The registry is declared first: the families live in it.
  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& jobs = prometheus::BuildGauge()
                                                    .Name("trainingjob_jobs")
                                                    .Help("TrainingJobs by phase.")
                                                    .Register(registry);
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("trainingjob_api_requests_total")
          .Help("Requests to the API server by how they ended.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& watch_restarts =
      prometheus::BuildCounter()
          .Name("trainingjob_watch_restarts_total")
          .Help("Watches that had to list again.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& cached_objects =
      prometheus::BuildGauge()
          .Name("trainingjob_cache_objects")
          .Help("Objects in the operator's caches.")
          .Register(registry);
  prometheus::Gauge& queue_depth = prometheus::BuildGauge()
                                       .Name("trainingjob_queue_depth")
                                       .Help("Jobs that wait to be looked at.")
                                       .Register(registry)
                                       .Add({});
  prometheus::Gauge& leader = prometheus::BuildGauge()
                                  .Name("trainingjob_leader")
                                  .Help("1: this operator acts. 0: it follows.")
                                  .Register(registry)
                                  .Add({});
  prometheus::Family<prometheus::Counter>& polls =
      prometheus::BuildCounter()
          .Name("trainingjob_progress_polls_total")
          .Help("Questions to a rank 0 how its run is doing, by how they ended.")
          .Register(registry);
  prometheus::Gauge& asked_jobs = prometheus::BuildGauge()
                                      .Name("trainingjob_progress_jobs")
                                      .Help("Jobs whose rank 0 is asked how it is doing.")
                                      .Register(registry)
                                      .Add({});
  prometheus::Histogram& reconcile_seconds =
      prometheus::BuildHistogram()
          .Name("trainingjob_reconcile_seconds")
          .Help("Time from looking at a job to its last write.")
          .Register(registry)
          .Add({}, kReconcileBuckets);
  prometheus::Family<prometheus::Counter>& restarts =
      prometheus::BuildCounter()
          .Name("trainingjob_restarts_total")
          .Help("Gang restarts by what ended the attempt.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& failures =
      prometheus::BuildCounter()
          .Name("trainingjob_failures_total")
          .Help("Jobs that failed for good, by what ended them.")
          .Register(registry);
  prometheus::Histogram& time_to_all_running =
      prometheus::BuildHistogram()
          .Name("trainingjob_time_to_all_running_seconds")
          .Help("Time from the start of a job to all its workers running.")
          .Register(registry)
          .Add({}, kStartBuckets);
  prometheus::Histogram& restart_seconds = prometheus::BuildHistogram()
                                               .Name("trainingjob_restart_seconds")
                                               .Help(
                                                   "Time from the start of a later attempt, its "
                                                   "back-off over, to all its workers running.")
                                               .Register(registry)
                                               .Add({}, kStartBuckets);
  prometheus::Gauge& stuck_terminating =
      prometheus::BuildGauge()
          .Name("trainingjob_stuck_terminating")
          .Help("Pods that should have ended more than five minutes ago.")
          .Register(registry)
          .Add({});
  std::function<Gauges()> gauge_source;

  void refresh() {
    const Gauges gauges = gauge_source();
    for (const auto& [phase, count] : gauges.jobs_by_phase) {
      jobs.Add({{"phase", to_string(phase)}}).Set(static_cast<double>(count));
    }
    for (const auto& [resource, count] : gauges.cached_objects) {
      cached_objects.Add({{"resource", to_string(resource)}}).Set(static_cast<double>(count));
    }
    stuck_terminating.Set(static_cast<double>(gauges.stuck_terminating));
    asked_jobs.Set(static_cast<double>(gauges.asked_jobs));
    queue_depth.Set(static_cast<double>(gauges.queue_depth));
    leader.Set(gauges.is_leader ? 1 : 0);
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  // A counter that begins at its first restart would hide that restart from rate().
  for (const auto& cause : kWords<FailureCause>) {
    impl_->restarts.Add({{"cause", cause.text}});
    impl_->failures.Add({{"cause", cause.text}});
  }
  using enum PollResult;
  for (const PollResult result : {read, refused, unreachable, no_answer, invalid}) {
    impl_->polls.Add({{"result", to_string(result)}});
  }
}
Metrics::~Metrics() = default;

void Metrics::count_request(Verb verb, Resource resource, const std::string& code) {
  impl_->requests
      .Add({{"verb", to_string(verb)}, {"resource", to_string(resource)}, {"code", code}})
      .Increment();
}

void Metrics::count_poll(PollResult result) {
  impl_->polls.Add({{"result", to_string(result)}}).Increment();
}

void Metrics::count_watch_restart(Resource resource, const std::string& reason) {
  impl_->watch_restarts.Add({{"resource", to_string(resource)}, {"reason", reason}}).Increment();
}

void Metrics::observe_reconcile(std::chrono::duration<double> seconds) {
  impl_->reconcile_seconds.Observe(seconds.count());
}

void Metrics::count_status(const JobStatus& before, const JobStatus& after) {
  if (after.restarts > before.restarts) {
    const char* cause = after.first_failure ? to_string(after.first_failure->cause) : "Unknown";
    impl_->restarts.Add({{"cause", cause}}).Increment(after.restarts - before.restarts);
  }
  if (after.phase == Phase::failed && before.phase != Phase::failed) {
    impl_->failures.Add({{"cause", cause_of_end(after)}}).Increment();
  }
  const bool all_run_now = after.running_time && after.running_time != before.running_time;
  if (!all_run_now || !after.start_time || !after.attempt_start_time) return;
  const bool is_first_attempt = *after.attempt_start_time <= *after.start_time;
  const std::chrono::duration<double> took = *after.running_time - *after.attempt_start_time;
  (is_first_attempt ? impl_->time_to_all_running : impl_->restart_seconds).Observe(took.count());
}

void Metrics::set_gauge_source(std::function<Gauges()> source) {
  impl_->gauge_source = std::move(source);
}

std::string Metrics::text() {
  if (impl_->gauge_source) impl_->refresh();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return out.str();
}

}  // namespace tj
