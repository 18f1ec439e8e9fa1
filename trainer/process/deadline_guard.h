// Ends the process when a call that may block for ever has not returned in time: libraries keep
// their promises about timeouts less strictly than we do.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace tj::trainer {

class DeadlineGuard {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Calls `overdue` on a thread of its own at `deadline`, unless destroyed before. `overdue`
  /// should not return. A process that ends because no memory is left may have none for a thread's
  /// stack: then it is SIGALRM that ends it, a second later at most.
  DeadlineGuard(Deadline deadline, std::function<void()> overdue) {
    try {
      thread_ = std::jthread([this, deadline, overdue = std::move(overdue)](std::stop_token stop) {
        std::unique_lock lock(mutex_);
        wake_.wait_until(lock, stop, deadline, [] { return false; });
        if (!stop.stop_requested()) overdue();
      });
    } catch (const std::system_error&) {
      using std::chrono::seconds;
      const auto left = std::chrono::ceil<seconds>(deadline - std::chrono::steady_clock::now());
      alarm_before_ = ::alarm(static_cast<unsigned>(std::max(left, seconds(1)).count()));
    }
  }
  ~DeadlineGuard() {
    if (alarm_before_) ::alarm(*alarm_before_);
  }
  DeadlineGuard(const DeadlineGuard&) = delete;
  DeadlineGuard& operator=(const DeadlineGuard&) = delete;

 private:
  std::mutex mutex_;  // guards nothing but the wait
  std::condition_variable_any wake_;
  std::optional<unsigned> alarm_before_;  // seconds that a guard around this one had left
  std::jthread thread_;                   // stops and joins first
};

}  // namespace tj::trainer
