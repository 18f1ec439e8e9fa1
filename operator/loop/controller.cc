#include "operator/loop/controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <vector>

#include "operator/loop/alarm.h"
#include "operator/loop/gauges.h"
#include "operator/loop/leader_elector.h"
#include "operator/loop/log_gate.h"
#include "operator/loop/log_text.h"
#include "operator/loop/metrics.h"
#include "operator/loop/node_watch.h"
#include "operator/loop/reconciler.h"
#include "operator/loop/tracked_api.h"
#include "operator/loop/view.h"
#include "operator/loop/watch_driver.h"
#include "operator/loop/work_queue.h"
#include "operator/plan/manifest.h"
#include "operator/plan/plan.h"

namespace tj {

class Controller::Impl {
 public:
  Impl(boost::asio::io_context& loop, KubeApi& api, Metrics& metrics, ControllerOptions options);
  ~Impl();

  void start();
  void stop();
  bool synced() const;
  std::string not_ready_reason() const;
  std::size_t requests_in_flight() const;
  Alarm& alarm() { return alarm_; }

 private:
  void stand_for_election(KubeApi& api, const LeaseTarget& lease);
  bool may_act() const { return !elector_ || elector_->leads(); }
  void halt();
  void add_watch(Resource resource, const std::string& label_selector);
  void learn(Resource resource, const WatchDelta& delta);
  void note_problem(Resource resource, const std::optional<Error>& problem);
  NodeWatch::Events node_events();
  void look_for_needed_nodes();
  void wake_job(const ObjectKey& key);
  void pump_later();
  void pump();
  void finish(const ObjectKey& key, SteadyTime started, const PassOutcome& outcome);
  void add_all_jobs();
  Gauges gauges() const;

  Metrics& metrics_;
  ControllerOptions options_;
  TrackedApi api_;
  Alarm alarm_;
  View view_;
  WorkQueue queue_;
  Reconciler reconciler_;
  std::unique_ptr<LeaderElector> elector_;  // null: no leader election
  std::vector<std::unique_ptr<WatchDriver>> watches_;
  NodeWatch node_watch_;
  std::map<Resource, Error> problems_;  // of the connection; empty: it works
  LogGate problem_log_;
  bool stopped_ = false;
  bool pump_is_due_ = false;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

Controller::Impl::Impl(boost::asio::io_context& loop, KubeApi& api, Metrics& metrics,
                       ControllerOptions options)
    : metrics_(metrics),
      options_(std::move(options)),
      api_(api),
      alarm_(loop, options_.steady_now),
      view_(options_.now),
      reconciler_(api_, view_, alarm_, metrics,
                  {.requests_in_flight_max = options_.requests_in_flight_max,
                   .now = options_.now,
                   .wake = [this](const ObjectKey& key) { wake_job(key); },
                   .progress = options_.progress,
                   .operator_ns = options_.operator_ns,
                   .decide = options_.decide}),
      node_watch_(api_, alarm_, node_events()) {
  if (options_.lease) stand_for_election(api, *options_.lease);
  add_watch(Resource::training_jobs, "");
  add_watch(Resource::pods, owned_selector());
  add_watch(Resource::services, owned_selector());
  metrics_.set_gauge_source([this] { return gauges(); });
}

Controller::Impl::~Impl() {
  halt();
  metrics_.set_gauge_source(nullptr);
}

void Controller::Impl::stand_for_election(KubeApi& api, const LeaseTarget& lease) {
  ElectionEvents events{.on_leading = [this] { pump_later(); },
                        .on_lost =
                            [this](const std::string& reason) {
                              halt();
                              options_.on_lease_lost(reason);
                            }};
  elector_ = std::make_unique<LeaderElector>(api, alarm_, lease, options_.now, std::move(events));
  api_.set_write_gate([this] { return elector_->leads(); });
}

void Controller::Impl::add_watch(Resource resource, const std::string& label_selector) {
  WatchEvents events{
      .on_delta = [this, resource](const WatchDelta& delta) { learn(resource, delta); },
      .on_relist =
          [this, resource](const std::string& reason) {
            metrics_.count_watch_restart(resource, reason);
          },
      .on_problem = [this, resource](
                        const std::optional<Error>& problem) { note_problem(resource, problem); },
  };
  watches_.push_back(std::make_unique<WatchDriver>(
      api_, alarm_, WatchTarget{resource, options_.ns, label_selector}, std::move(events)));
}

NodeWatch::Events Controller::Impl::node_events() {
  return {.on_delta = [this](const WatchDelta& delta) { learn(Resource::nodes, delta); },
          .on_relist =
              [this](const std::string& reason) {
                metrics_.count_watch_restart(Resource::nodes, reason);
              },
          .on_end = [this] { view_.forget_nodes(); }};
}

void Controller::Impl::look_for_needed_nodes() {
  if (!options_.watch_nodes) return;
  const auto& jobs = view_.jobs().objects();
  node_watch_.set_needed(std::any_of(jobs.begin(), jobs.end(), [](const auto& entry) {
    return !is_managed_elsewhere(entry.second) && needs_nodes(entry.second);
  }));
}

void Controller::Impl::start() {
  for (const auto& watch : watches_) watch->start();
}

void Controller::Impl::stop() {
  halt();
  // Not before the last write is answered: the next leader must not meet it.
  if (elector_) api_.when_idle([this] { elector_->release(); });
}

void Controller::Impl::halt() {
  if (stopped_) return;
  stopped_ = true;
  api_.close();
  reconciler_.stop();
  alarm_.cancel_all();
  for (const auto& watch : watches_) watch->stop();
  node_watch_.stop();
}

bool Controller::Impl::synced() const {
  return std::all_of(watches_.begin(), watches_.end(),
                     [](const auto& watch) { return watch->synced(); });
}

std::size_t Controller::Impl::requests_in_flight() const {
  return api_.in_flight() + (elector_ ? elector_->requests_in_flight() : 0);
}

std::string Controller::Impl::not_ready_reason() const {
  if (stopped_) return "stopping";
  if (!problems_.empty()) {
    const auto& [resource, problem] = *problems_.begin();
    return std::string("can't watch ") + to_string(resource) + ": " + describe(problem);
  }
  for (const auto& watch : watches_) {
    if (watch->synced()) continue;
    return std::string("waiting for the first list of ") + to_string(watch->resource());
  }
  if (elector_ && elector_->problem()) return "can't lead: " + describe(*elector_->problem());
  return "";
}

void Controller::Impl::learn(Resource resource, const WatchDelta& delta) {
  for (const ObjectKey& key : view_.apply(resource, delta)) {
    queue_.add(key, std::max(alarm_.now(), reconciler_.next_decision(key)));
  }
  pump_later();
}

void Controller::Impl::wake_job(const ObjectKey& key) {
  queue_.add(key, alarm_.now());
  pump_later();
}

void Controller::Impl::note_problem(Resource resource, const std::optional<Error>& problem) {
  if (!problem) {
    if (problems_.erase(resource) == 0 || !problems_.empty()) return;
    problem_log_.reset();
    spdlog::info("msg=\"the API server answers again\"");
    return;
  }
  Error known = *problem;
  const bool kind_is_unknown =
      problem->code == Code::not_found && resource == Resource::training_jobs;
  if (kind_is_unknown) known.message += "; is the CustomResourceDefinition installed?";
  problems_.insert_or_assign(resource, known);
  // The subject differs between the three watches, the cause seldom does.
  const std::string cause = std::string(to_string(known.code)) + " " + known.message;
  if (!problem_log_.opens(cause, alarm_.now())) return;
  spdlog::error("resource={} code={} msg=\"can't watch, will try again\" error={}",
                to_string(resource), to_string(known.code), log_value(describe(known)));
}

/// Once per turn of the loop, however many changes came in.
void Controller::Impl::pump_later() {
  if (std::exchange(pump_is_due_, true)) return;
  alarm_.later([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    pump_is_due_ = false;
    pump();
  });
}

void Controller::Impl::pump() {
  if (stopped_ || !synced()) return;
  look_for_needed_nodes();
  if (elector_) elector_->start();  // not before the caches have synced
  if (!may_act()) return;
  if (queue_.take_overflow()) add_all_jobs();
  const SteadyTime now = alarm_.now();
  while (const auto key = queue_.pop(now)) {
    reconciler_.reconcile(
        *key, [this, key = *key, now](const PassOutcome& outcome) { finish(key, now, outcome); });
  }
  if (const auto next = queue_.next_due()) alarm_.set("queue", *next, [this] { pump(); });
}

void Controller::Impl::finish(const ObjectKey& key, SteadyTime started,
                              const PassOutcome& outcome) {
  const SteadyTime now = alarm_.now();
  metrics_.observe_reconcile(now - started);
  if (outcome.settled) {
    if (outcome.requeue_after) queue_.add(key, now + *outcome.requeue_after);
    queue_.succeeded(key);
  } else {
    queue_.failed(key, now, std::min(outcome.retry_after, kRetryAfterMax));
  }
  for (const auto& watch : watches_) {
    if (outcome.stale == watch->resource()) watch->distrust();
  }
  pump_later();
}

void Controller::Impl::add_all_jobs() {
  for (const auto& [key, job] : view_.jobs().objects()) queue_.add(key, alarm_.now());
}

Gauges Controller::Impl::gauges() const {
  Gauges gauges = count_gauges(view_, options_.now());
  gauges.queue_depth = queue_.depth();
  gauges.asked_jobs = reconciler_.asked_count();
  gauges.is_leader = may_act();
  return gauges;
}

Controller::Controller(boost::asio::io_context& loop, KubeApi& api, Metrics& metrics,
                       ControllerOptions options)
    : impl_(std::make_unique<Impl>(loop, api, metrics, std::move(options))) {}
Controller::~Controller() = default;

void Controller::start() { impl_->start(); }
void Controller::stop() { impl_->stop(); }
bool Controller::synced() const { return impl_->synced(); }
std::string Controller::not_ready_reason() const { return impl_->not_ready_reason(); }
std::size_t Controller::requests_in_flight() const { return impl_->requests_in_flight(); }
void Controller::wake() { impl_->alarm().wake(); }
std::optional<SteadyTime> Controller::next_wake() const { return impl_->alarm().next(); }

}  // namespace tj
