#include "operator/loop/reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/loop/log_text.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

bool is_deletion(const Action& action) {
  return std::holds_alternative<DeletePod>(action) || std::holds_alternative<DeleteJob>(action);
}

bool has_creations(const Plan& plan) {
  return !std::all_of(plan.actions.begin(), plan.actions.end(), is_deletion);
}

bool has_deletions(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), is_deletion);
}

bool has_network_policy(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return std::holds_alternative<PutNetworkPolicy>(action) ||
           std::holds_alternative<DeleteNetworkPolicy>(action);
  });
}

/// What the pods of an attempt are made from.
bool is_same_attempt(const JobStatus& left, const JobStatus& right) {
  return left.attempt == right.attempt && left.world_size == right.world_size &&
         left.template_hash == right.template_hash;
}

/// An operator that dies right after acting must find in the status why it acted.
bool must_persist_first(const TrainingJob& job, const Plan& plan) {
  const bool is_first_look = !job.status.start_time.has_value();
  return is_first_look || has_deletions(plan) || is_terminal(plan.status.phase) ||
         !is_same_attempt(plan.status, job.status);
}

/// The pod of rank 0 of the current attempt.
const Pod* rank0_of(const TrainingJob& job, const std::vector<Pod>& pods) {
  for (const Pod& pod : pods) {
    const bool is_its = pod.worker_index == 0 && pod.attempt == job.status.attempt &&
                        pod.meta.controller_uid == job.meta.uid;
    if (is_its) return &pod;
  }
  return nullptr;
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
      applier_(api, view, alarm, options_.requests_in_flight_max, options_.operator_ns),
      status_writer_(api, view),
      events_(api, alarm),
      news_reader_(api),
      poller_(options_.progress, alarm, metrics, options_.wake) {}

void Reconciler::reconcile(const ObjectKey& key, Done done) {
  const TrainingJob* job = view_.jobs().find(key);
  if (job == nullptr || is_managed_elsewhere(*job)) {
    poller_.forget(key);
    memory_.erase(key);  // of a job that is gone, the owner garbage collection takes the children
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
  const auto again = bug_in([&] {
    const TrainingJob* job = view_.jobs().find(key);
    if (job == nullptr) return done({});
    const std::string words = "a bug of the operator: " + bug;
    report_trouble(*job, words);
    Pass pass{.job = *job,
              .plan = plan_after_bug(*job, words, options_.now()),
              .outcome = {.settled = false},
              .done = done};
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
  const bool create_first = has_creations(pass.plan) && !must_persist_first(pass.job, pass.plan);
  if (create_first) return create_children(std::move(pass));
  // Creations, if there are any, belong to the next pass, which finds the verdict persisted.
  if (has_creations(pass.plan)) requeue_by(pass.outcome, std::chrono::milliseconds{0});
  write_status(std::move(pass));
}

Reconciler::Memory& Reconciler::memory_of(const TrainingJob& job) {
  Memory& memory = memory_[job.meta.key()];
  if (memory.uid != job.meta.uid) memory = Memory{.uid = job.meta.uid};
  return memory;
}

SteadyTime Reconciler::rests_until(const ObjectKey& key) const {
  const auto found = memory_.find(key);
  return found == memory_.end() ? SteadyTime{} : found->second.rests_until;
}

Plan Reconciler::decide(const TrainingJob& job) {
  const SteadyTime began = alarm_.now();
  Plan next = plan_from_view(job);
  memory_of(job).awaits_cause_since = next.awaits_cause_since;
  const SteadyTime ended = alarm_.now();
  memory_of(job).rests_until = ended + (ended - began) * kRestFactor;
  return next;
}

Plan Reconciler::plan_from_view(const TrainingJob& job) {
  Memory& memory = memory_of(job);
  const Service* service = view_.services().find(job.meta.key());
  std::vector<Pod> pods = view_.pods_of(job.meta.key());
  std::vector<Node> nodes = view_.nodes_of(pods);
  auto progress = poller_.look(job, rank0_of(job, pods));
  Observed observed{.job = job,
                    .pods = std::move(pods),
                    .service = service != nullptr ? std::optional(*service) : std::nullopt,
                    .now = options_.now(),
                    .nodes = std::move(nodes),
                    .pod_news = memory.pod_news,
                    .create_error = memory.create_error,
                    .refusal = memory.refusal,
                    .progress = std::move(progress),
                    .network_policy_hash = memory.network_policy_hash,
                    .awaits_cause_since = memory.awaits_cause_since,
                    .progress_interval = poller_.write_interval()};
  Plan next = options_.decide(observed);
  // Nothing is left to create, perhaps because a creation whose answer was lost went well: the
  // refusal before it is outdated. Only a final one is a verdict by itself.
  const bool is_outdated = memory.create_error && !has_creations(next);
  if (!is_outdated || is_terminal(next.status.phase)) return next;
  memory.create_error.reset();
  observed.create_error.reset();
  return options_.decide(observed);
}

void Reconciler::create_children(Pass pass) {
  const TrainingJob job = pass.job;
  const std::vector<Action> actions = pass.plan.actions;
  ++creating_;
  applier_.create(job, actions, [this, pass = std::move(pass)](ApplyOutcome outcome) mutable {
    --creating_;
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
    memory.trouble_log.reset();
    if (has_network_policy(pass.plan)) memory.network_policy_hash = network_policy_hash(pass.job);
  }
  // The caches know the answers by now: the status counts them at once.
  pass.job = *now;
  pass.plan = decide(*now);
  const bool is_over = is_terminal(pass.plan.status.phase);
  if (!outcome.complete && !is_over) report_trouble(*now, outcome.trouble);
  pass.outcome.stale = outcome.stale;
  pass.outcome.retry_after = outcome.retry_after;
  if (!outcome.complete || has_creations(pass.plan)) pass.outcome.settled = false;
  write_status(std::move(pass));
}

/// Zero: the status is written now, if it has changed. Of 100 jobs that come at once, each patch
/// would cost the API server as much as two pods.
std::chrono::milliseconds Reconciler::wait_to_write(const Pass& pass) {
  const CountsPace& pace = memory_of(pass.job).counts_pace;
  const SteadyTime now = alarm_.now();
  const JobStatus& before = pass.job.status;
  const JobStatus& after = pass.plan.status;
  const bool has_moved = is_progress(before, after);
  const auto counts_wait = pace.wait(now);
  if (counts_wait.count() == 0 && creating_ == 0 && !has_moved) return {};
  const bool is_urgent = is_urgent_change(before, after);
  const bool may_go = is_urgent || has_moved;
  const bool others_first = creating_ > 0 && (!is_urgent || is_on_its_way(before, after));
  const std::chrono::milliseconds none{0};
  const auto turn_wait = has_moved && !is_urgent ? wait_for_turn(pass) : none;
  if ((may_go && !others_first) || is_same_status(before, after)) return turn_wait;
  return std::max({may_go ? none : counts_wait,
                   others_first ? pace.wait_beside_creations(now) : none, turn_wait});
}

/// Zero: now. Times in a status are whole seconds, so that many jobs are due at once, and each
/// write under way costs a connection.
std::chrono::milliseconds Reconciler::wait_for_turn(const Pass& pass) {
  const auto& before = pass.job.status.progress;
  const bool is_first = !before || before->attempt != pass.job.status.attempt;
  if (is_first) return {};
  auto& turn = memory_of(pass.job).progress_turn;
  const SteadyTime now = alarm_.now();
  if (!turn) {
    turn = std::max(now, next_progress_turn_);
    next_progress_turn_ = *turn + kProgressTurn;
  }
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(*turn, now) - now);
}

void Reconciler::write_status(Pass pass) {
  const auto wait = wait_to_write(pass);
  if (wait.count() > 0) {
    requeue_by(pass.outcome, wait);
    return remove_children(std::move(pass));
  }
  const TrainingJob job = pass.job;
  const JobStatus status = pass.plan.status;
  status_writer_.write(job, status, [this, pass = std::move(pass)](StatusOutcome outcome) mutable {
    guard(pass.job.meta.key(), pass.done, [&] { status_written(std::move(pass), outcome); });
  });
}

void Reconciler::status_written(Pass pass, const StatusOutcome& status) {
  switch (status.result) {
    case StatusResult::unchanged: return remove_children(std::move(pass));
    case StatusResult::written: {
      memory_of(pass.job).progress_turn.reset();
      const JobStatus& before = pass.job.status;
      const bool was_urgent = is_urgent_change(before, pass.plan.status);
      const bool is_of_counts = was_urgent || !is_progress(before, pass.plan.status);
      // A rank that succeeds is soon on record: its pod may go at any time.
      const bool is_lasting =
          was_urgent || before.succeeded_ranks != pass.plan.status.succeeded_ranks;
      if (is_of_counts) memory_of(pass.job).counts_pace.written(is_lasting, alarm_.now());
      metrics_.count_status(pass.job.status, pass.plan.status);
      announce(pass);
      return remove_children(std::move(pass));
    }
    case StatusResult::job_gone:  // as far as the View knows it is there: a watch will tell
    case StatusResult::outdated:
    case StatusResult::failed: break;
  }
  // Without the verdict in the status nothing may follow from it.
  if (!status.trouble.empty()) report_trouble(pass.job, status.trouble);
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
  if (!has_deletions(pass.plan)) return pass.done(pass.outcome);
  const TrainingJob job = pass.job;
  const std::vector<Action> actions = pass.plan.actions;
  applier_.remove(
      job, actions, [this, pass = std::move(pass)](const ApplyOutcome& outcome) mutable {
        guard(pass.job.meta.key(), pass.done, [&] { removed(std::move(pass), outcome); });
      });
}

void Reconciler::removed(Pass pass, const ApplyOutcome& outcome) {
  if (!outcome.complete) {
    report_trouble(pass.job, outcome.trouble);
    pass.outcome.settled = false;
    pass.outcome.retry_after = std::max(pass.outcome.retry_after, outcome.retry_after);
  }
  pass.done(pass.outcome);
}

void Reconciler::ask_for_news(const Pass& pass) {
  if (pass.plan.ask_about.empty()) return;
  const PackedPod* pod = view_.pods().find({pass.job.meta.ns, pass.plan.ask_about});
  Memory& memory = memory_of(pass.job);
  const SteadyTime now = alarm_.now();
  const bool is_soon = memory.asked_for_news && now < *memory.asked_for_news + kAskInterval;
  if (is_soon || pod == nullptr) return;
  memory.asked_for_news = now;
  news_reader_.ask(pod->unpack(),
                   [this, job = pass.job](const auto& news) { take_news(job, news); });
}

void Reconciler::take_news(const TrainingJob& job, const std::optional<PodNews>& news) {
  const TrainingJob* now = view_.jobs().find(job.meta.key());
  if (now == nullptr || now->meta.uid != job.meta.uid) return;
  Memory& memory = memory_of(*now);
  if (memory.pod_news == news) return;
  memory.pod_news = news;
  options_.wake(job.meta.key());
}

void Reconciler::report_trouble(const TrainingJob& job, const std::string& trouble) {
  if (!memory_of(job).trouble_log.opens(trouble, alarm_.now())) return;
  spdlog::warn("job={} attempt={} msg=\"will try again\" error={}", to_string(job.meta.key()),
               job.status.attempt, log_value(trouble));
}

}  // namespace tj
