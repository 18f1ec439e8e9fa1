#include "operator/loop/reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/loop/log_text.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

/// What the plan does next, or the one after it, waits for the status.
bool has_consequence(const Plan& plan) {
  const bool is_followed = plan.requeue_after == std::chrono::milliseconds{0};
  return is_followed || (plan.must_persist_first && !plan.actions.empty());
}

/// What the library says that has thrown; absent: nothing has.
template <typename Step>
std::optional<std::string> bug_in(Step step) {
  try {
    step();
  } catch (const std::exception& bug) {
    return bug.what();
  }
  return std::nullopt;
}

/// A pass that a bug has cut short may leave answers under way, which would end it again.
Reconciler::Done once(Reconciler::Done done) {
  return [done = std::move(done), is_done = std::make_shared<bool>(false)](PassOutcome outcome) {
    if (!std::exchange(*is_done, true)) done(outcome);
  };
}

void requeue_by(PassOutcome& outcome, std::chrono::milliseconds delay) {
  outcome.requeue_after = std::min(outcome.requeue_after.value_or(delay), delay);
}

}  // namespace

Reconciler::Reconciler(KubeApi& api, View& view, Alarm& alarm, Metrics& metrics,
                       ReconcilerOptions options)
    : view_(view),
      alarm_(alarm),
      metrics_(metrics),
      options_(std::move(options)),
      applier_(api, view, alarm, options_.requests_in_flight_max, options_.operator_ns,
               [this](const ObjectKey& job) { gate_.created_one(job); }),
      status_writer_(api, view),
      events_(api, alarm),
      news_(api, alarm, options_.wake),
      poller_(options_.progress, alarm, metrics, options_.wake),
      pace_([this] { return gate_.creating_since(); }),
      gate_(options_.requests_in_flight_max * kGateFactor, options_.wake) {}

void Reconciler::reconcile(const ObjectKey& key, Done done) {
  const TrainingJob* job = view_.jobs().find(key);
  if (job == nullptr || is_managed_elsewhere(*job)) {
    poller_.forget(key);
    news_.forget(key);
    view_.forget_departed(key);
    memory_.erase(key);  // of a job that is gone, the owner garbage collection takes the children
    gate_.leave(key);
    return done({});
  }
  done = once(std::move(done));
  guard(key, done, [&] { begin({.job = *job, .plan = {}, .outcome = {}, .done = done}); });
}

template <typename Step>
void Reconciler::guard(ObjectKey key, Done done, Step step) {
  if (const auto bug = bug_in(std::move(step))) end_after_bug(key, done, *bug);
}

void Reconciler::end_after_bug(const ObjectKey& key, const Done& done, const std::string& bug) {
  gate_.leave(key);
  const auto again = bug_in([&] {
    const TrainingJob* job = view_.jobs().find(key);
    if (job == nullptr) return done({});
    const std::string words = "a bug of the operator: " + bug;
    log_error(*job, words);
    Pass pass{.job = *job,
              .plan = plan_after_bug(*job, words, options_.now()),
              .outcome = {.settled = false},
              .done = done};
    if (is_same_status(job->status, pass.plan.status)) return done(pass.outcome);
    status_writer_.write(*job, pass.plan.status, [this, pass](const StatusOutcome& status) {
      if (status.result == StatusResult::written) (void)bug_in([&] { announce(pass); });
      pass.done(pass.outcome);
    });
  });
  if (!again) return;
  spdlog::error("job={} bug={} msg=\"can't be written to its status\" error={}", to_string(key),
                log_value(bug), log_value(*again));
  done({.settled = false});
}

void Reconciler::begin(Pass pass) {
  pass.plan = decide(pass.job);
  ask_for_news(pass);
  const bool creates = has_creations(pass.plan.actions);
  if (creates && !pass.plan.must_persist_first) return create_children(std::move(pass));
  gate_.leave(pass.job.meta.key());
  // They belong to the next pass, which finds persisted what they rest on.
  if (creates) requeue_by(pass.outcome, std::chrono::milliseconds{0});
  write_status(std::move(pass));
}

Reconciler::Memory& Reconciler::memory_of(const TrainingJob& job) {
  Memory& memory = memory_[job.meta.key()];
  if (memory.uid != job.meta.uid) memory = Memory{.uid = job.meta.uid};
  return memory;
}

SteadyTime Reconciler::next_decision(const ObjectKey& key) const {
  const auto found = memory_.find(key);
  return found == memory_.end() ? SteadyTime{} : found->second.next_decision;
}

Plan Reconciler::decide(const TrainingJob& job) {
  const SteadyTime began = alarm_.now();
  Plan next = plan_from_view(job);
  memory_of(job).awaits_cause_since = next.awaits_cause_since;
  const SteadyTime ended = alarm_.now();
  memory_of(job).next_decision = ended + (ended - began) * kDecisionShare;
  return next;
}

Plan Reconciler::plan_from_view(const TrainingJob& job) {
  Memory& memory = memory_of(job);
  const Service* service = view_.services().find(job.meta.key());
  std::vector<Pod> pods = view_.pods_of(job.meta.key());
  std::vector<Node> nodes = view_.nodes_of(pods);
  if (job.status.phase != Phase::running) view_.forget_departed(job.meta.key());  // judged
  auto progress = poller_.look(job, pods);
  Observed observed{.job = job,
                    .pods = std::move(pods),
                    .departed = view_.departed_of(job.meta.key()),
                    .service = service != nullptr ? std::optional(*service) : std::nullopt,
                    .now = options_.now(),
                    .nodes = std::move(nodes),
                    .pod_news = news_.of(job.meta),
                    .create_error = memory.create_error,
                    .refusal = memory.refusal,
                    .progress = std::move(progress),
                    .network_policy_hash = memory.network_policy_hash,
                    .has_begun = memory.has_begun,
                    .awaits_cause_since = memory.awaits_cause_since,
                    .progress_interval = poller_.write_interval()};
  Plan next = options_.decide(observed);
  // Nothing is left to create, perhaps because a creation whose answer was lost went well: the
  // refusal before it is outdated. Only a final one is a verdict by itself.
  const bool is_outdated = memory.create_error && !has_creations(next.actions);
  if (!is_outdated || is_terminal(next.status.phase)) return next;
  memory.create_error.reset();
  observed.create_error.reset();
  return options_.decide(observed);
}

void Reconciler::create_children(Pass pass) {
  TrainingJob job = pass.job;
  job.status = pass.plan.status;  // children are made from what that says of the attempt
  const Actions actions = pass.plan.actions;
  const int workers = count<CreatePod>(actions);
  if (workers > 0 && !gate_.enter(job.meta.key(), workers, alarm_.now()))
    return write_status(std::move(pass));
  memory_of(job).has_begun = true;
  applier_.create(job, actions, [this, pass = std::move(pass)](ApplyOutcome outcome) mutable {
    gate_.leave(pass.job.meta.key());
    guard(pass.job.meta.key(), pass.done, [&] { created(std::move(pass), outcome); });
  });
}

void Reconciler::created(Pass pass, const ApplyOutcome& outcome) {
  const TrainingJob* now = view_.jobs().find(pass.job.meta.key());
  if (now == nullptr || now->meta.uid != pass.job.meta.uid) return pass.done({});
  Memory& memory = memory_of(*now);
  // What went wrong otherwise says nothing of the refusal before it.
  if (outcome.complete || outcome.create_error) {
    memory.create_error = outcome.create_error;
    memory.refusal = outcome.refusal;
  }
  if (outcome.complete) {
    memory.error_log.reset();
    if (has_any<PutNetworkPolicy, DeleteNetworkPolicy>(pass.plan.actions))
      memory.network_policy_hash = network_policy_hash(pass.job);
  }
  // The caches know the answers by now: the status counts them at once.
  pass.job = *now;
  pass.plan = decide(*now);
  const bool is_over = is_terminal(pass.plan.status.phase);
  if (!outcome.complete && !is_over) log_error(*now, outcome.error);
  pass.outcome.stale = outcome.stale;
  pass.outcome.retry_after = outcome.retry_after;
  if (!outcome.complete || has_creations(pass.plan.actions)) pass.outcome.settled = false;
  write_status(std::move(pass));
}

void Reconciler::write_status(Pass pass) {
  const StatusChange change =
      change_between(pass.job.status, pass.plan.status, has_consequence(pass.plan));
  const auto wait = pace_.wait(memory_of(pass.job).pace, change, alarm_.now());
  if (wait.count() > 0) requeue_by(pass.outcome, wait);
  if (wait.count() > 0 || change == StatusChange::none) return remove_children(std::move(pass));
  const TrainingJob job = pass.job;
  const JobStatus status = pass.plan.status;
  status_writer_.write(job, status,
                       [this, change, pass = std::move(pass)](StatusOutcome outcome) mutable {
                         guard(pass.job.meta.key(), pass.done,
                               [&] { status_written(std::move(pass), change, outcome); });
                       });
}

void Reconciler::status_written(Pass pass, StatusChange change, const StatusOutcome& status) {
  switch (status.result) {
    case StatusResult::written:
      pace_.written(memory_of(pass.job).pace, change, alarm_.now());
      metrics_.count_status(pass.job.status, pass.plan.status);
      announce(pass);
      return remove_children(std::move(pass));
    case StatusResult::job_gone:  // as far as the View knows it is there: a watch will tell
    case StatusResult::outdated:
    case StatusResult::failed: break;
  }
  // Without the verdict in the status nothing may follow from it.
  if (!status.error.empty()) log_error(pass.job, status.error);
  pass.outcome.settled = false;
  pass.outcome.retry_after = std::max(pass.outcome.retry_after, status.retry_after);
  pass.done(pass.outcome);
}

void Reconciler::announce(const Pass& pass) {
  for (const PlannedEvent& event : pass.plan.events) {
    spdlog::info("job={} attempt={} phase={} reason={} msg={}", to_string(pass.job.meta.key()),
                 pass.plan.status.attempt, to_string(pass.plan.status.phase), event.reason,
                 log_value(event.message));
    events_.add(pass.job.meta.key(), make_event(pass.job, event, options_.now()).dump());
  }
}

void Reconciler::remove_children(Pass pass) {
  if (pass.plan.requeue_after) requeue_by(pass.outcome, *pass.plan.requeue_after);
  if (!has_deletions(pass.plan.actions)) return pass.done(pass.outcome);
  const TrainingJob job = pass.job;
  const Actions actions = pass.plan.actions;
  applier_.remove(
      job, actions, [this, pass = std::move(pass)](const ApplyOutcome& outcome) mutable {
        guard(pass.job.meta.key(), pass.done, [&] { removed(std::move(pass), outcome); });
      });
}

void Reconciler::removed(Pass pass, const ApplyOutcome& outcome) {
  if (!outcome.complete) {
    log_error(pass.job, outcome.error);
    pass.outcome.settled = false;
    pass.outcome.retry_after = std::max(pass.outcome.retry_after, outcome.retry_after);
  }
  pass.done(pass.outcome);
}

void Reconciler::ask_for_news(const Pass& pass) {
  if (pass.plan.ask_about.empty()) return;
  const PackedPod* pod = view_.pods().find({pass.job.meta.ns, pass.plan.ask_about});
  if (pod != nullptr) news_.ask(pass.job.meta, meta_of(*pod));
}

void Reconciler::log_error(const TrainingJob& job, const std::string& error) {
  if (!memory_of(job).error_log.opens(error, alarm_.now())) return;
  spdlog::warn("job={} attempt={} msg=\"will try again\" error={}", to_string(job.meta.key()),
               job.status.attempt, log_value(error));
}

}  // namespace tj
