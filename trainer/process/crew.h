// Several threads at one piece of work, and the caller, who tells how far they are: until all are
// done, one has failed, or the process is asked to stop.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "trainer/values/failure.h"

namespace tj::trainer {

class Crew {
 public:
  /// From any thread; not 0: stop now.
  using StopSignal = std::function<int()>;
  explicit Crew(const StopSignal& stop_signal) : stop_signal_(stop_signal) {}

  /// Runs `work` on `threads` threads, and `tell` here each `interval` until they have ended. What
  /// the first of them fails with, an exception, too; the others then find is_stopping(). Once.
  std::optional<Failure> run(int threads, const std::function<std::optional<Failure>()>& work,
                             std::chrono::milliseconds interval, const std::function<void()>& tell);

  /// From any thread: nothing more is to be begun.
  bool is_stopping() const { return has_failed_ || stop_signal_() != 0; }

 private:
  void run_one(const std::function<std::optional<Failure>()>& work);

  const StopSignal& stop_signal_;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;  // guards threads_left_ and failure_
  std::condition_variable changed_;
  int threads_left_ = 0;
  std::optional<Failure> failure_;  // the first one
};

}  // namespace tj::trainer
