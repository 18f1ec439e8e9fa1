#include "trainer/checkpoint/interference.h"

#include <algorithm>

namespace tj::trainer {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void Interference::save_began(std::int64_t step) {
  before_.clear();
  after_.clear();
  if (recent_.size() < kInterferenceSteps) return;
  before_.assign(recent_.begin(), recent_.end());
  step_ = step;
}

std::optional<InterferenceReport> Interference::add(double seconds) {
  recent_.push_back(seconds);
  if (recent_.size() > kInterferenceSteps) recent_.pop_front();
  if (before_.empty()) return std::nullopt;
  after_.push_back(seconds);
  if (after_.size() < kInterferenceSteps) return std::nullopt;
  const InterferenceReport report{.step = step_,
                                  .percent = (median(after_) / median(before_) - 1) * 100};
  before_.clear();
  after_.clear();
  return report;
}

}  // namespace tj::trainer
