#include "operator/plan/conditions.h"

#include <algorithm>
#include <utility>

#include "operator/plan/plan.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

constexpr const char* kSpecInvalid = "SpecInvalid";

void set_condition(JobStatus& status, const Condition& wanted, TimePoint now) {
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& known) { return known.type == wanted.type; });
  if (found == status.conditions.end()) {
    found = status.conditions.insert(status.conditions.end(), wanted);
    found->last_transition_time = now;
    return;
  }
  const bool flipped = found->status != wanted.status;
  const auto since = flipped ? std::optional(now) : found->last_transition_time;
  *found = wanted;
  found->last_transition_time = since;
}

/// A job whose spec was always good has no such condition.
void set_spec_invalid(JobStatus& status, const TrainingJob& job, TimePoint now) {
  const auto& error = job.spec_error;
  const bool goes_on = error && !is_terminal(status.phase);
  if (!goes_on && find_invalid_spec(status) == nullptr) return;
  set_condition(
      status,
      {.type = kSpecInvalid,
       .status = goes_on,
       .reason = goes_on ? reason::kInvalid : status.reason.c_str(),
       .message = goes_on ? *error + "; the job goes on, its next change must mend this" : "",
       .observed_generation = job.meta.generation,
       .last_transition_time = {}},
      now);
}

}  // namespace

void set_conditions(JobStatus& status, const TrainingJob& job, TimePoint now) {
  const std::pair<const char*, Phase> kTypes[] = {{"Running", Phase::running},
                                                  {"Suspended", Phase::suspended},
                                                  {"Restarting", Phase::restarting},
                                                  {"Succeeded", Phase::succeeded},
                                                  {"Failed", Phase::failed}};
  for (const auto& [type, phase] : kTypes) {
    const bool holds = status.phase == phase;
    set_condition(status,
                  {.type = type,
                   .status = holds,
                   .reason = status.reason,
                   .message = holds ? status.message : std::string{},
                   .observed_generation = status.observed_generation,
                   .last_transition_time = {}},
                  now);
  }
  set_spec_invalid(status, job, now);
}

const Condition* find_invalid_spec(const JobStatus& status) {
  for (const Condition& condition : status.conditions) {
    if (condition.type == kSpecInvalid && condition.status) return &condition;
  }
  return nullptr;
}

bool may_break_rules(const TrainingJob& job) {
  if (job.status.reason.empty()) return false;
  const Condition* said = find_invalid_spec(job.status);
  return said == nullptr || said->observed_generation == job.meta.generation;
}

bool is_on_its_way(const JobStatus& before, const JobStatus& after) {
  return after.reason == reason::kWaitingForWorkers &&
         (before.reason == reason::kCreatingWorkers || before.phase == Phase::restarting);
}

}  // namespace tj
