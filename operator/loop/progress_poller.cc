#include "operator/loop/progress_poller.h"

#include <algorithm>

namespace tj {
namespace {

/// Of a document that any image may have made, what is looked at later: a job costs few bytes.
Progress trim(Progress document) {
  auto& stalled = document.stalled;
  const auto longest = std::max_element(
      stalled.begin(), stalled.end(),
      [](const auto& left, const auto& right) { return left.seconds < right.seconds; });
  if (longest != stalled.end()) stalled = {*longest};
  stalled.shrink_to_fit();
  return document;
}

/// Numbers that no run can have, or of another attempt: its pod's address was given to another one.
bool is_believable(const Progress& document, int attempt) {
  const bool is_of_attempt = document.attempt == 0 || document.attempt == attempt;
  return is_of_attempt && document.step >= 0 && document.steps >= 0;
}

bool is_same_place(const Progress& left, const Progress& right) {
  return left.step == right.step && left.steps == right.steps && left.phase == right.phase &&
         left.last_checkpoint == right.last_checkpoint;
}

bool may_answer(const TrainingJob& job, const Pod& rank0) {
  return job.progress_port && rank0.phase == PodPhase::running && !rank0.exit &&
         !rank0.meta.deletion_time && !rank0.ip.empty();
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

}  // namespace

std::optional<ProgressNews> ProgressPoller::look(const TrainingJob& job,
                                                 const std::vector<Pod>& pods) {
  const ObjectKey key = job.meta.key();
  const Pod* rank0 = rank0_of(job, pods);
  const bool is_over = rank0 == nullptr || is_terminal(job.status.phase) || source_ == nullptr;
  if (is_over) {
    forget(key);
    return std::nullopt;
  }
  const ProgressTarget target{rank0->ip, job.progress_port.value_or(0)};
  const auto found = entries_.find(key);
  const bool is_other = found != entries_.end() && (found->second.pod_uid != rank0->meta.uid ||
                                                    found->second.target != target);
  if (is_other) forget(key);
  auto [known, is_new] = entries_.try_emplace(key);
  Entry& entry = known->second;
  if (is_new) {
    entry.pod_uid = rank0->meta.uid;
    entry.target = target;
    entry.number = next_number_++;
  }
  entry.heartbeat_timeout = job.spec.run.heartbeat_timeout;
  entry.attempt = job.status.attempt;
  entry.was_read |= job.status.progress && job.status.progress->attempt == job.status.attempt;
  set_asked(*known, may_answer(job, *rank0));
  return ProgressNews{entry.pod_uid, entry.document, unreadable_for(entry)};
}

void ProgressPoller::forget(const ObjectKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  set_asked(*found, false);
  entries_.erase(found);
}

void ProgressPoller::stop() {
  stopped_ = true;
  source_ = nullptr;
  due_.clear();
  entries_.clear();
  asked_count_ = 0;
}

std::chrono::milliseconds ProgressPoller::write_interval() const {
  const std::chrono::milliseconds share{asked_count_ * 1'000 / kWritesPerSecondMax};
  return std::max(kProgressIntervalMin, share);
}

std::chrono::milliseconds ProgressPoller::unreadable_for(const Entry& entry) {
  if (entry.failures < kFailuresToTell || !entry.failing_since) return {};
  return std::chrono::floor<std::chrono::milliseconds>(entry.failed_last - *entry.failing_since);
}

void ProgressPoller::set_asked(Entries::value_type& known, bool is_asked) {
  Entry& entry = known.second;
  if (entry.is_asked == is_asked) return;
  entry.is_asked = is_asked;
  if (!is_asked) {
    --asked_count_;
    return unschedule(entry);
  }
  ++asked_count_;
  // After a restart of the operator there are many at once.
  if (!entry.in_flight) schedule(known, up_to(entry.was_read ? kInterval : kFirstMax));
}

void ProgressPoller::schedule(Entries::value_type& known, std::chrono::milliseconds delay) {
  auto& [key, entry] = known;
  unschedule(entry);
  entry.due = due_.emplace(alarm_.now() + delay, &key);
  pump();
}

void ProgressPoller::unschedule(Entry& entry) {
  if (!entry.due) return;
  due_.erase(*entry.due);
  entry.due.reset();
}

std::chrono::milliseconds ProgressPoller::up_to(std::chrono::milliseconds max) {
  return std::chrono::milliseconds{jitter_() % static_cast<unsigned long>(max.count() + 1)};
}

/// Until the next time, give or take a tenth: what can't be told yet need not be read. The last
/// step before the end is worth a look.
std::chrono::milliseconds ProgressPoller::wait_after(const Entry& entry) {
  std::chrono::milliseconds wait = std::max(kInterval, write_interval());
  if (entry.failures == 0 && entry.document->eta_seconds) {
    const double half_ms = std::clamp(*entry.document->eta_seconds * 500, 0.0, 1e6);
    wait = std::min(wait, std::chrono::milliseconds{static_cast<long>(half_ms)});
  }
  const bool looks_for_hang = entry.heartbeat_timeout && entry.was_read;
  if (looks_for_hang) {
    wait = std::min<std::chrono::milliseconds>(wait, *entry.heartbeat_timeout / kPollsPerTimeout);
  } else {
    for (int i = 1; i < entry.failures && wait < kBackoffMax; ++i) wait *= 2;
  }
  wait = std::clamp(wait, kIntervalMin, kBackoffMax);
  return wait - wait / 10 + up_to(wait / 5);
}

void ProgressPoller::pump() {
  const SteadyTime now = alarm_.now();
  while (!stopped_ && in_flight_ < kAtOnceMax && !due_.empty() && due_.begin()->first <= now) {
    const ObjectKey key = *due_.begin()->second;
    Entry& entry = entries_.at(key);
    unschedule(entry);
    entry.in_flight = true;
    ++in_flight_;
    source_->fetch(entry.target, [this, key, number = entry.number,
                                  alive = std::weak_ptr(alive_)](PollAnswer answer) {
      if (!alive.expired()) take(key, number, std::move(answer));
    });
  }
  const bool waits = !stopped_ && !due_.empty() && in_flight_ < kAtOnceMax;
  if (waits) alarm_.set("progress", due_.begin()->first, [this] { pump(); });
}

void ProgressPoller::take(const ObjectKey& key, unsigned long long number, PollAnswer answer) {
  --in_flight_;
  const auto found = entries_.find(key);
  const bool is_its = found != entries_.end() && found->second.number == number;
  if (!stopped_ && is_its) {
    Entry& entry = found->second;
    entry.in_flight = false;
    const bool is_wrong =
        answer.result == PollResult::read && !is_believable(answer.document, entry.attempt);
    if (is_wrong) answer.result = PollResult::invalid;
    metrics_.count_poll(answer.result);
    const bool is_news = learn(entry, std::move(answer), alarm_.now());
    if (entry.is_asked) schedule(*found, wait_after(entry));
    if (is_news) wake_(key);
  }
  pump();
}

bool ProgressPoller::learn(Entry& entry, PollAnswer answer, SteadyTime now) {
  if (answer.result != PollResult::read) {
    ++entry.failures;
    entry.failed_last = now;
    // Whom the network does not let through has said nothing about the run; but the backlog of one
    // who stands still fills up in time.
    const bool begins = !entry.failing_since && answer.result != PollResult::unreachable;
    if (begins) entry.failing_since = now;
    const bool looks_for_hang = entry.heartbeat_timeout && entry.was_read;
    return looks_for_hang && unreadable_for(entry) > *entry.heartbeat_timeout;
  }
  const bool was_failing = entry.failures > 0;
  entry.failures = 0;
  entry.failing_since.reset();
  entry.was_read = true;
  const bool is_late =
      entry.heartbeat_timeout &&
      answer.document.heartbeat_age_seconds > static_cast<double>(entry.heartbeat_timeout->count());
  const bool has_moved = !entry.document || !is_same_place(*entry.document, answer.document);
  entry.document = trim(std::move(answer.document));
  return is_late || has_moved || was_failing;
}

}  // namespace tj
