// A plan as text: one line per decision, so that a golden file reads as a story.
#include "operator/plan/plan.h"

namespace tj {
namespace {

std::string line_of(const Action& action, const TrainingJob& job) {
  if (std::holds_alternative<CreateService>(action)) return "create service " + job.meta.name;
  if (const auto* create = std::get_if<CreatePod>(&action)) {
    return "create " + names::worker_pod(job.meta.name, create->worker_index) +
           " attempt=" + std::to_string(create->attempt);
  }
  if (std::holds_alternative<PutNetworkPolicy>(action))
    return "put network-policy " + job.meta.name;
  if (std::holds_alternative<DeleteNetworkPolicy>(action)) {
    return "delete network-policy " + job.meta.name;
  }
  if (std::holds_alternative<DeleteJob>(action)) return "delete job " + job.meta.name;
  const auto& remove = std::get<DeletePod>(action);
  return (remove.force ? "delete by force " : "delete ") + remove.name;
}

std::string line_of(const JobStatus& status) {
  std::string line = std::string("status phase=") + to_string(status.phase) +
                     " reason=" + status.reason + " ready=" + status.ready_text +
                     " attempt=" + std::to_string(status.attempt);
  const ReplicaStatus& workers = status.workers;
  if (workers.active != workers.ready) line += " active=" + std::to_string(workers.active);
  if (workers.terminating > 0) line += " terminating=" + std::to_string(workers.terminating);
  if (status.restarts > 0) {
    line += " restarts=" + std::to_string(status.restarts) +
            " counted=" + std::to_string(status.restarts_counted);
  }
  if (!status.succeeded_ranks.empty()) line += " succeeded=" + status.succeeded_ranks.text();
  if (status.first_failure) line += " first-failure=" + std::to_string(status.first_failure->rank);
  if (status.progress) line += " progress=" + to_text(*status.progress);
  if (status.last_checkpoint) line += " saved=" + std::to_string(status.last_checkpoint->step);
  for (const std::string& node : status.excluded_nodes) line += " excluded=" + node;
  if (!status.troubled_ranks.empty()) {
    line += " troubled=" + std::to_string(status.troubled_ranks.size());
  }
  return line + " | " + status.message;
}

}  // namespace

std::string to_text(const Plan& plan, const TrainingJob& job) {
  std::string text;
  for (const Action& action : plan.actions) text += line_of(action, job) + "\n";
  if (!(plan.status == job.status)) text += line_of(plan.status) + "\n";
  for (const PlannedEvent& event : plan.events) {
    text += std::string("event ") + (event.warning ? "Warning " : "Normal ") + event.reason + "\n";
  }
  if (!plan.ask_about.empty()) text += "ask about " + plan.ask_about + "\n";
  if (plan.requeue_after) {
    text += "requeue after " + std::to_string(plan.requeue_after->count()) + " ms\n";
  }
  return text.empty() ? "nothing to do\n" : text;
}

}  // namespace tj
