// Keeps an error that persists from filling the log: a cause is logged when it is new, and then at
// most each 30 seconds. Pure; time is passed in.
#pragma once
#include <map>
#include <string>

#include "operator/loop/work_queue.h"

namespace tj {

class LogGate {
 public:
  static constexpr std::chrono::seconds kRepeatAfter{30};
  static constexpr std::size_t kCausesMax = 32;

  bool opens(const std::string& cause, SteadyTime now) {
    const auto found = logged_.find(cause);
    if (found != logged_.end() && now < found->second + kRepeatAfter) return false;
    if (found == logged_.end() && logged_.size() >= kCausesMax) logged_.clear();
    logged_.insert_or_assign(cause, now);
    return true;
  }
  /// The error is over: the next one is new, whatever it is.
  void reset() { logged_.clear(); }

 private:
  std::map<std::string, SteadyTime> logged_;
};

}  // namespace tj
