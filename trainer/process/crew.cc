#include "trainer/process/crew.h"

#include <exception>
#include <thread>
#include <vector>

namespace tj::trainer {

std::optional<Failure> Crew::run(int threads, const std::function<std::optional<Failure>()>& work,
                                 std::chrono::milliseconds interval,
                                 const std::function<void()>& tell) {
  threads_left_ = threads;
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back([&] { run_one(work); });
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return threads_left_ == 0; })) {
    lock.unlock();
    tell();
    lock.lock();
  }
  return failure_;
}

void Crew::run_one(const std::function<std::optional<Failure>()>& work) {
  std::optional<Failure> mine;
  try {
    mine = work();
  } catch (const std::exception& failure) {
    mine = Failure{.message = cause_of(failure)};
  }
  const std::lock_guard lock(mutex_);
  if (mine && !failure_) failure_ = mine;
  if (mine) has_failed_ = true;
  --threads_left_;
  changed_.notify_all();
}

}  // namespace tj::trainer
