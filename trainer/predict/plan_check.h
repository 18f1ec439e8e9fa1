// What the planner would have said of a run, beside what the run then takes: the first steps tell
// what a rank computes by itself, the link is measured once, and the steps after that are compared.
// Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/predict/step.h"

namespace tj::trainer {

/// One optimizer step of rank 0, in seconds.
struct SeenStep {
  double step_s = 0;     // all of it
  double forward_s = 0;  // of all passes
  double update_s = 0;   // without waits
  double waited_s = 0;   // for other ranks
  double other_s = 0;    // for data and for checkpoints
};

struct PlanVerdict {
  std::int64_t first_step = 0, last_step = 0;  // of this run, from 1
  StepPrediction predicted = {};
  double measured_s = 0;         // mean of a step, without data and checkpoints
  double measured_waited_s = 0;  // and of the waits in it
  Link link = {};

  /// predicted 1.72 s a step, measured 1.80 s (+4.6 %) over steps 11 to 60: exposed communication
  /// 0.90 s predicted, 0.95 s measured | 117 MB/s each way
  std::string line() const;
  /// For metrics.jsonl.
  std::string json(std::int64_t at_step) const;
};

class PlanCheck {
 public:
  /// Steps of a run from which a prediction is made, without the first; and those it is held to.
  static constexpr std::int64_t kLearned = 10;
  static constexpr std::int64_t kCompared = 50;
  static constexpr std::int64_t kStepsMin = kLearned + kCompared;

  /// `inputs` without compute and link.
  explicit PlanCheck(StepInputs inputs) : inputs_(std::move(inputs)) {}

  /// Each step of this run, in order.
  void add(const SeenStep& seen);
  /// Once, before the first compared step. On all ranks at the same step.
  bool wants_link() const { return steps_ == kLearned && !has_link_; }
  void set_link(const Link& link);
  /// Once, after the last compared step.
  std::optional<PlanVerdict> verdict() const;

 private:
  StepInputs inputs_ = {};
  SeenStep learned_, compared_;  // sums
  std::int64_t steps_ = 0;
  bool has_link_ = false;
};

}  // namespace tj::trainer
