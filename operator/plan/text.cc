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
  return "delete " + std::get<DeletePod>(action).name;
}

std::string line_of(const JobStatus& status) {
  std::string line = std::string("status phase=") + to_string(status.phase) +
                     " reason=" + status.reason + " ready=" + status.ready_text +
                     " attempt=" + std::to_string(status.attempt);
  if (status.first_failure) line += " first-failure=" + std::to_string(status.first_failure->rank);
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
  if (plan.requeue_after) {
    text += "requeue after " + std::to_string(plan.requeue_after->count()) + " ms\n";
  }
  return text.empty() ? "nothing to do\n" : text;
}

}  // namespace tj
