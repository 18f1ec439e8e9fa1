#include "operator/plan/attempt.h"

#include <algorithm>

#include "operator/plan/manifest.h"

namespace tj {
namespace {

bool has_own_pods(const Observed& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(), [&](const Pod& pod) {
    return pod.meta.controller_uid == observed.job.meta.uid;
  });
}

/// As far as the status knows, which another operator may have written that led before.
bool has_not_begun(const TrainingJob& job) {
  return job.status.attempt == 0 && !job.status.start_time && !is_terminal(job.status.phase);
}

bool creates_service(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return std::holds_alternative<CreateService>(action);
  });
}

}  // namespace

void record_attempt(JobStatus& status, const Observed& observed) {
  if (!status.start_time) status.start_time = observed.now;
  if (!status.attempt_start_time) status.attempt_start_time = observed.now;
  if (status.world_size == 0) status.world_size = observed.job.spec.worker_count;
  // Of an earlier release, which did not say when it was.
  if (!status.excluded_nodes.empty() && !status.last_exclusion_time) {
    status.last_exclusion_time = observed.now;
  }
  // None yet, or one of another version of the operator: that is taken over, the gang runs on.
  if (!is_comparable_hash(status.template_hash)) {
    status.template_hash = template_hash(observed.job.spec);
  }
}

void end_attempt(JobStatus& status) {
  ++status.attempt;
  status.world_size = 0;
  status.template_hash.clear();
  status.attempt_start_time.reset();
  status.quick_restarts = 0;
  status.running_time.reset();
  status.troubled_ranks.clear();
  status.succeeded_ranks.clear();
}

bool is_other_than_recorded(const TrainingJob& job) {
  const JobStatus& status = job.status;
  const bool is_resized = status.world_size > 0 && status.world_size != job.spec.worker_count;
  const bool is_remade =
      is_comparable_hash(status.template_hash) && status.template_hash != template_hash(job.spec);
  return is_resized || is_remade;
}

bool is_recorded_by_service(const Observed& observed) {
  const auto& service = observed.service;
  return has_not_begun(observed.job) && service && service->first_attempt &&
         service->meta.controller_uid == observed.job.meta.uid;
}

void record_by_service(JobStatus& status, const Observed& observed) {
  const Service& service = *observed.service;
  status.world_size = service.first_attempt->world_size;
  status.template_hash = service.first_attempt->template_hash;
  // The API server's clock may be ahead of ours.
  status.start_time = std::min(service.meta.creation_time.value_or(observed.now), observed.now);
  status.attempt_start_time = status.start_time;
}

bool is_record_lost(const Observed& observed) {
  const bool was_changed = observed.job.meta.generation > 1;
  const bool has_begun = observed.has_begun || has_own_pods(observed);
  return was_changed && has_not_begun(observed.job) && has_begun &&
         !is_recorded_by_service(observed);
}

bool must_persist_first(const Observed& observed, const Plan& plan) {
  const JobStatus& before = observed.job.status;
  const JobStatus& after = plan.status;
  if (has_deletions(plan.actions) || is_terminal(after.phase)) return true;
  const bool is_on_record = before.start_time && before.attempt == after.attempt &&
                            before.world_size == after.world_size &&
                            before.template_hash == after.template_hash;
  const bool begins_with_service = has_not_begun(observed.job) && after.attempt == 0 &&
                                   creates_service(plan) && !observed.has_begun &&
                                   !has_own_pods(observed);
  return !is_on_record && !begins_with_service;
}

}  // namespace tj
