// A loop that a test turns by hand, and a clock with it: what MemoryApi's post and now functions
// are made of.
#pragma once
#include <deque>
#include <functional>

#include "contract/result.h"
#include "operator/api/types.h"

namespace tj {

struct HandLoop {
  std::deque<std::function<void()>> work;
  TimePoint now = TimePoint{} + std::chrono::hours{24 * 365 * 56};

  std::function<void(std::function<void()>)> post() {
    return [this](std::function<void()> next) { work.push_back(std::move(next)); };
  }
  std::function<TimePoint()> clock() {
    return [this] { return now; };
  }
  /// Runs until nothing is left to do.
  void turn() {
    for (int steps = 0; !work.empty(); ++steps) {
      TJ_CHECK(steps < 100'000, "the loop does not come to rest");
      const auto next = std::move(work.front());
      work.pop_front();
      next();
    }
  }
};

}  // namespace tj
