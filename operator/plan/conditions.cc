#include "operator/plan/conditions.h"

#include <algorithm>
#include <utility>

namespace tj {
namespace {

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

}  // namespace

void set_conditions(JobStatus& status, TimePoint now) {
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
}

}  // namespace tj
