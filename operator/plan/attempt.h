// What the pods of an attempt are made from, and where that is on record before the first of them:
// in the status, or, until a job has its first one, in the Service of its attempt 0. Pure.
#pragma once
#include "operator/plan/plan.h"

namespace tj {

/// Fills in what is recorded of an attempt when it begins: its pods are made from that.
void record_attempt(JobStatus& status, const Observed& observed);
/// The attempt ends without a failure: its pods are leftovers from now on, and the next attempt is
/// recorded anew when it begins.
void end_attempt(JobStatus& status);
/// The spec has changed since in what the pods are made from.
bool is_other_than_recorded(const TrainingJob& job);

/// The status says nothing of attempt 0 yet, and its Service says what that is made from.
bool is_recorded_by_service(const Observed& observed);
/// Puts down what the Service says, as if it stood in the status already.
void record_by_service(JobStatus& status, const Observed& observed);
/// It has pods, or had some, and neither status nor Service, which somebody has deleted, says what
/// they are made from: the spec, if that was never changed.
bool is_record_lost(const Observed& observed);

/// What the plan does rests on its status: an operator that dies right after acting must find there
/// why it acted. Not so for attempt 0, which begins with the creation of its Service.
bool must_persist_first(const Observed& observed, const Plan& plan);

}  // namespace tj
