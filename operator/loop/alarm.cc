#include "operator/loop/alarm.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <vector>

namespace tj {
void Alarm::set(const std::string& slot, SteadyTime at, std::function<void()> action) {
  const auto before = next();
  entries_.insert_or_assign(slot, Entry{at, std::move(action)});
  if (next() != before) arm();
}

void Alarm::cancel(const std::string& slot) { entries_.erase(slot); }

void Alarm::cancel_all() {
  entries_.clear();
  timer_.cancel();
}

void Alarm::later(std::function<void()> action) {
  boost::asio::post(timer_.get_executor(), std::move(action));
}

void Alarm::wake() {
  // An action may set its own slot again: only what was due at the beginning runs.
  const SteadyTime now = now_();
  std::vector<std::string> due;
  for (const auto& [slot, entry] : entries_) {
    if (entry.at <= now) due.push_back(slot);
  }
  for (const std::string& slot : due) {
    auto node = entries_.extract(slot);
    if (node.empty()) continue;  // an earlier action cancelled it
    node.mapped().action();
  }
  arm();
}

std::optional<SteadyTime> Alarm::next() const {
  const auto first =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const auto& a, const auto& b) { return a.second.at < b.second.at; });
  if (first == entries_.end()) return std::nullopt;
  return first->second.at;
}

void Alarm::arm() {
  const auto at = next();
  if (!at) {
    timer_.cancel();
    return;
  }
  // By the difference, because a clock turned by hand has no relation to the timer's.
  timer_.expires_after(std::max(*at - now_(), SteadyTime::duration::zero()));
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) wake();
  });
}

}  // namespace tj
