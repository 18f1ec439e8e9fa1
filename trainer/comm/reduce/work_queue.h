// A thread that does one task after another, in their order.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tj::trainer {

class WorkQueue {
 public:
  /// At most `tasks_max` wait.
  explicit WorkQueue(std::size_t tasks_max);
  /// What has not begun is dropped; waits for what has.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Waits while there are too many. A task throws nothing. On any thread but its own.
  void push(std::function<void()> task);

 private:
  void run(const std::stop_token& stop);

  const std::size_t tasks_max_;
  std::mutex mutex_;  // guards the tasks
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> tasks_;
  std::jthread thread_;  // ends first
};

}  // namespace tj::trainer
