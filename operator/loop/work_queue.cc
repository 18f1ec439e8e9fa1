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
  if (entry.due) {
    if (*entry.due <= at) return;
    waiting_.erase({*entry.due, key});
  }
  entry.due = at;
  waiting_.emplace(at, key);
}

std::optional<ObjectKey> WorkQueue::pop(SteadyTime now) {
  if (waiting_.empty() || waiting_.begin()->first > now) return std::nullopt;
  const ObjectKey key = waiting_.begin()->second;
  waiting_.erase(waiting_.begin());
  Entry& entry = entries_.at(key);
  entry.due.reset();
  entry.in_work = true;
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
  entry.in_work = false;
  --in_work_;
  if (!entry.again) {
    entries_.erase(found);
    return;
  }
  entry.due = entry.again;
  entry.again.reset();
  waiting_.emplace(*entry.due, found->first);
}

std::optional<SteadyTime> WorkQueue::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

bool WorkQueue::take_overflow() {
  if (!overflowed_ || entries_.size() > keys_max_ / 2) return false;
  overflowed_ = false;
  return true;
}

}  // namespace tj
