#include "cli/logs/resume_point.h"

#include <algorithm>
#include <functional>

namespace tj {
namespace {

/// Time and text in one number; that two of a second's lines share it by chance is not to be
/// expected (64 bits).
std::uint64_t key_of(LogTime time, std::string_view text) {
  const auto stamp = static_cast<std::uint64_t>(time.time_since_epoch().count());
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  return hash ^ (stamp * kGoldenRatio + (hash << 6) + (hash >> 2));
}

}  // namespace

std::optional<LogTime> ResumePoint::since() const {
  if (!newest_) return std::nullopt;
  return std::chrono::floor<std::chrono::seconds>(*newest_) - kOverlap;
}

void ResumePoint::stream_begins() {
  expected_.clear();
  expected_until_ = newest_;
  for (const Seen& line : seen_) ++expected_[line.key];
}

bool ResumePoint::is_known(LogTime time, std::uint64_t key) {
  if (!expected_until_) return false;
  if (time > *expected_until_) {
    expected_until_.reset();
    expected_.clear();
    return false;
  }
  if (const auto found = expected_.find(key); found != expected_.end()) {
    if (--found->second == 0) expected_.erase(found);
    return true;
  }
  const bool is_before_the_tail = is_tail_ && time <= *first_;
  const bool is_before_the_stream = time < *since();  // it was not asked for
  return is_before_the_tail || is_before_the_stream ||
         (forgotten_until_ && time <= *forgotten_until_);
}

void ResumePoint::remember(LogTime time, std::uint64_t key) {
  if (!first_) first_ = time;
  newest_ = std::max(newest_.value_or(time), time);
  seen_.push_back({time, key});
  const LogTime horizon = *since();
  while (!seen_.empty() && seen_.front().time < horizon) seen_.pop_front();
  while (seen_.size() > kRememberedMax) {
    forgotten_until_ = std::max(forgotten_until_.value_or(seen_.front().time), seen_.front().time);
    seen_.pop_front();
  }
}

bool ResumePoint::take(LogTime time, std::string_view text) {
  const std::uint64_t key = key_of(time, text);
  if (is_known(time, key)) return false;
  remember(time, key);
  return true;
}

}  // namespace tj
