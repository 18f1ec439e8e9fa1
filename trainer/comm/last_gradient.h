// When a backward pass had its last gradient: from then on it only waits for other ranks.
#pragma once
#include <chrono>
#include <memory>
#include <vector>

namespace at {
class Tensor;
}

namespace tj::trainer {

class LastGradient {
 public:
  using Clock = std::chrono::steady_clock;

  /// Watches the gradients of `parameters`. Must come before those who reduce them, so that their
  /// work is not counted as this rank's.
  explicit LastGradient(const std::vector<at::Tensor>& parameters);
  ~LastGradient();

  /// Of the backward pass that has just ended on this thread.
  Clock::time_point at() const { return *at_; }

 private:
  struct Watched;
  std::unique_ptr<Watched> watched_;
  std::shared_ptr<Clock::time_point> at_;
};

}  // namespace tj::trainer
