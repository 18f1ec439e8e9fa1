#include "operator/loop/work_queue.h"

#include <algorithm>

#include "contract/result.h"

namespace tj {
namespace {

using std::chrono::milliseconds;
constexpr int kDoublingsMax = 14;  // 5 ms * 2^14 = 82 s: beyond the bound
static_assert(WorkQueue::kBackoffMin * (1 << kDoublingsMax) >= WorkQueue::kBackoffMax);

milliseconds backoff(int failure_count) {
  const int doublings = std::min(failure_count - 1, kDoublingsMax);
  return std::min(WorkQueue::kBackoffMin * (1 << doublings), WorkQueue::kBackoffMax);
}

}  // namespace

void WorkQueue::add(const ObjectKey& key, SteadyTime at) {
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= keys_max_) {
      overflowed_ = true;
      return;
    }
    found = entries_.emplace(key, Entry{}).first;
  }
  Entry& entry = found->second;
  if (entry.in_work) {
    entry.again = std::min(entry.again.value_or(at), at);
    return;
  }
  auto& waiting = namespaces_[key.ns].waiting;
  if (entry.due) {
    if (*entry.due <= at) return;
    waiting.erase({*entry.due, key});
  }
  entry.due = at;
  waiting.emplace(at, key);
}

/// The namespace whose turn it is, or the end.
WorkQueue::Namespaces::const_iterator WorkQueue::next_namespace() const {
  auto next = namespaces_.end();
  for (auto it = namespaces_.begin(); it != namespaces_.end(); ++it) {
    const bool may_work = it->second.in_work < kInWorkMax - in_work_;
    if (!may_work || it->second.waiting.empty()) continue;
    const bool is_due_before =
        next == namespaces_.end() || *it->second.waiting.begin() < *next->second.waiting.begin();
    if (is_due_before) next = it;
  }
  return next;
}

std::optional<ObjectKey> WorkQueue::pop(SteadyTime now) {
  const auto due = next_due();
  if (!due || *due > now) return std::nullopt;
  Namespace& space = namespaces_.at(next_namespace()->first);
  const ObjectKey key = space.waiting.begin()->second;
  space.waiting.erase(space.waiting.begin());
  Entry& entry = entries_.at(key);
  entry.due.reset();
  entry.in_work = true;
  ++space.in_work;
  ++in_work_;
  return key;
}

void WorkQueue::succeeded(const ObjectKey& key) {
  const auto found = entries_.find(key);
  TJ_CHECK(found != entries_.end() && found->second.in_work, to_string(key) + " is not in work");
  found->second.failure_count = 0;
  finish(found);
}

milliseconds WorkQueue::failed(const ObjectKey& key, SteadyTime now, milliseconds delay_min) {
  const auto found = entries_.find(key);
  TJ_CHECK(found != entries_.end() && found->second.in_work, to_string(key) + " is not in work");
  Entry& entry = found->second;
  const milliseconds delay = std::max(backoff(++entry.failure_count), delay_min);
  entry.again = std::min(entry.again.value_or(now + delay), now + delay);
  finish(found);
  return delay;
}

void WorkQueue::finish(Entries::iterator found) {
  Entry& entry = found->second;
  const auto space = namespaces_.find(found->first.ns);
  entry.in_work = false;
  --in_work_;
  --space->second.in_work;
  if (entry.again) {
    entry.due = std::exchange(entry.again, std::nullopt);
    space->second.waiting.emplace(*entry.due, found->first);
    return;
  }
  entries_.erase(found);
  const bool is_idle = space->second.waiting.empty() && space->second.in_work == 0;
  if (is_idle) namespaces_.erase(space);
}

std::optional<SteadyTime> WorkQueue::next_due() const {
  const auto space = next_namespace();
  if (space == namespaces_.end()) return std::nullopt;
  return space->second.waiting.begin()->first;
}

bool WorkQueue::take_overflow() {
  if (!overflowed_ || entries_.size() > keys_max_ / 2) return false;
  overflowed_ = false;
  return true;
}

}  // namespace tj
