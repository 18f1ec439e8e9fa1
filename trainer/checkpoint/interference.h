// What a save costs the steps beside it: the median of the ten steps after its beginning against
// the ten before. Pure.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace tj::trainer {

inline constexpr std::size_t kInterferenceSteps = 10;

struct InterferenceReport {
  std::int64_t step = 0;  // of the save
  double percent = 0;     // how much longer the steps took; below 0: shorter
};

class Interference {
 public:
  /// A save of the state after `step` begins; one that is still being watched is given up.
  void save_began(std::int64_t step);
  /// A step took so long. A report once the ten steps after a save are known; none for a save that
  /// had less than ten before it.
  std::optional<InterferenceReport> add(double seconds);

 private:
  std::deque<double> recent_;   // at most ten
  std::vector<double> before_;  // ten while a save is watched, else none
  std::vector<double> after_;
  std::int64_t step_ = 0;
};

}  // namespace tj::trainer
