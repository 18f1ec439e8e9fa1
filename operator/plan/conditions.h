// The conditions of a job's status: one for each phase that somebody may wait for, and SpecInvalid
// on a job that goes on though its spec breaks a rule. Pure.
#pragma once
#include "operator/api/types.h"

namespace tj {

/// Brings the conditions in line with the phase, and with what is wrong with the spec.
void set_conditions(JobStatus& status, const TrainingJob& job, TimePoint now);

/// SpecInvalid, if it holds.
const Condition* find_invalid_spec(const JobStatus& status);

/// A job that has a status was begun when its spec was good: by a version with other rules, then.
/// It goes on, and SpecInvalid says so; the next change of the spec is held to the rules.
bool may_break_rules(const TrainingJob& job);

/// From having asked for workers to waiting for them: a step that follows by itself, and no news.
bool is_on_its_way(const JobStatus& before, const JobStatus& after);

}  // namespace tj
