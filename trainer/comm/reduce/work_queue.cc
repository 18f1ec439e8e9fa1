#include "trainer/comm/reduce/work_queue.h"

namespace tj::trainer {

WorkQueue::WorkQueue(std::size_t tasks_max)
    : tasks_max_(tasks_max), thread_([this](const std::stop_token& stop) { run(stop); }) {}

WorkQueue::~WorkQueue() = default;

void WorkQueue::push(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.size() < tasks_max_; });
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void WorkQueue::run(const std::stop_token& stop) {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) return;
      if (stop.stop_requested()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.notify_all();
    }
    task();
  }
}

}  // namespace tj::trainer
