// Ends the process when a call that may block for ever has not returned in time: libraries keep
// their promises about timeouts less strictly than we do.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tj::trainer {

class DeadlineGuard {
 public:
  /// Calls `overdue` on a thread of its own at `deadline`, unless destroyed before. `overdue`
  /// should not return.
  DeadlineGuard(std::chrono::steady_clock::time_point deadline, std::function<void()> overdue)
      : thread_([this, deadline, overdue = std::move(overdue)](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          wake_.wait_until(lock, stop, deadline, [] { return false; });
          if (!stop.stop_requested()) overdue();
        }) {}

 private:
  std::mutex mutex_;  // guards nothing but the wait
  std::condition_variable_any wake_;
  std::jthread thread_;  // stops and joins first
};

}  // namespace tj::trainer
