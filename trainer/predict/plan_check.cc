#include "trainer/predict/plan_check.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trainer/predict/forecast.h"

namespace tj::trainer {
namespace {

void add_to(SeenStep& sum, const SeenStep& seen) {
  sum.step_s += seen.step_s;
  sum.forward_s += seen.forward_s;
  sum.update_s += seen.update_s;
  sum.waited_s += seen.waited_s;
  sum.other_s += seen.other_s;
}

}  // namespace

void PlanCheck::add(const SeenStep& seen) {
  ++steps_;
  if (steps_ == 1) return;  // buckets are made, kernels chosen, pages touched
  if (steps_ <= kLearned) return add_to(learned_, seen);
  if (steps_ <= kStepsMin) add_to(compared_, seen);
}

void PlanCheck::set_link(const Link& link) {
  has_link_ = true;
  inputs_.link = link;
  const double steps = kLearned - 1;
  const double passes = steps * static_cast<double>(inputs_.passes);
  const double own_s = learned_.step_s - learned_.forward_s - learned_.update_s -
                       learned_.waited_s - learned_.other_s;
  inputs_.compute = {.forward_s = learned_.forward_s / passes,
                     .backward_s = std::max(0.0, own_s / passes),
                     .update_s = learned_.update_s / steps};
}

std::optional<PlanVerdict> PlanCheck::verdict() const {
  if (steps_ != kStepsMin || !has_link_) return std::nullopt;
  constexpr double kSteps = kCompared;
  return PlanVerdict{.first_step = kLearned + 1,
                     .last_step = kStepsMin,
                     .predicted = predict_step(inputs_),
                     .measured_s = (compared_.step_s - compared_.other_s) / kSteps,
                     .measured_waited_s = compared_.waited_s / kSteps,
                     .link = inputs_.link};
}

std::string PlanVerdict::line() const {
  char difference[32];
  const double predicted_s = std::max(predicted.step_s(), 1e-9);
  std::snprintf(difference, sizeof difference, "%+.1f %%", 100 * (measured_s / predicted_s - 1));
  return "predicted " + seconds_text(predicted.step_s()) + " a step, measured " +
         seconds_text(measured_s) + " (" + difference + ") over steps " +
         std::to_string(first_step) + " to " + std::to_string(last_step) +
         ": exposed communication " + seconds_text(predicted.exposed_s) + " predicted, " +
         seconds_text(measured_waited_s) + " measured | " + bytes_text(link.bytes_per_second) +
         "/s each way";
}

std::string PlanVerdict::json(std::int64_t at_step) const {
  const nlohmann::ordered_json document = {{"event", "prediction"},
                                           {"at_step", at_step},
                                           {"predicted_seconds", predicted.step_s()},
                                           {"measured_seconds", measured_s},
                                           {"predicted_exposed_seconds", predicted.exposed_s},
                                           {"measured_exposed_seconds", measured_waited_s},
                                           {"sent_bytes", predicted.sent_bytes},
                                           {"bytes_per_second", link.bytes_per_second},
                                           {"latency_seconds", link.latency_s}};
  return document.dump();
}

}  // namespace tj::trainer
