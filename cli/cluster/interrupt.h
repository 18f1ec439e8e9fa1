// The way for a deadline, or for who has lost interest, to end what a coroutine waits for: Asio of
// Boost 1.74 can't cancel a coroutine, only close what it waits on.
#pragma once
#include <functional>
#include <utility>

namespace tj {

class Interrupt {
 public:
  /// What to close from now on; at once if it was fired already. An empty one: nothing.
  void set(std::function<void()> stop) {
    stop_ = std::move(stop);
    if (fired_ && stop_) std::exchange(stop_, nullptr)();
  }
  void fire() {
    fired_ = true;
    if (stop_) std::exchange(stop_, nullptr)();
  }
  bool fired() const { return fired_; }

 private:
  std::function<void()> stop_;
  bool fired_ = false;
};

}  // namespace tj
