#include "cli/jobs/job_words.h"

#include <algorithm>

#include "cli/jobs/table.h"
#include "contract/outcome.h"
#include "operator/local/pod_status.h"

namespace tj {

std::string phase_text(const JobView& view) {
  const bool is_cut_off = view.has_lost_its_process && !is_terminal(view.job.status.phase);
  return is_cut_off ? "Interrupted" : to_string(view.job.status.phase);
}

bool is_over(const JobView& view) {
  return view.has_lost_its_process || is_terminal(view.job.status.phase);
}

namespace job_words {

using std::chrono::seconds;

std::string ago(const std::optional<TimePoint>& time, TimePoint now) {
  return time ? duration_text(std::chrono::floor<seconds>(now - *time)) : "";
}

std::string ready(const JobView& view) {
  return view.job.status.ready_text.empty() ? "0/" + std::to_string(view.job.spec.worker_count)
                                            : view.job.status.ready_text;
}

std::string reason(const JobView& view) {
  return view.has_lost_its_process && !is_terminal(view.job.status.phase) ? "ProcessEnded"
                                                                          : view.job.status.reason;
}

/// What is left of the time that rank 0 told, by its own clock; absent once nothing runs.
std::string eta(const JobView& view) {
  const auto& told = view.job.status.progress;
  if (!told || !told->eta_seconds || is_over(view)) return "";
  const seconds since =
      told->updated_at ? std::chrono::floor<seconds>(view.now - *told->updated_at) : seconds{0};
  return duration_text(seconds{*told->eta_seconds} - std::max(since, seconds{0}));
}

std::string progress(const JobView& view) {
  const auto& told = view.job.status.progress;
  return told ? to_text(*told) : "";
}

std::string loss(const JobView& view) {
  const auto& told = view.job.status.progress;
  return told && told->loss ? number_text(*told->loss) : "";
}

std::string phase_of(const Pod& pod) {
  if (pod.meta.deletion_time) return "Terminating";
  return to_string(pod.phase);
}

std::string note_on(const JobView& view, const Pod& pod) {
  for (const TroubledRank& trouble : view.job.status.troubled_ranks) {
    if (trouble.pod == pod.meta.name)
      return trouble.reason + (trouble.message.empty() ? "" : ": " + trouble.message);
  }
  if (pod.exit) {
    const auto outcome = from_termination_message(pod.exit->message);  // of our own trainer
    const std::string& message = outcome ? outcome->message : pod.exit->message;
    const std::string& words = message.empty() ? pod.exit->reason : message;
    return "exit code " + std::to_string(pod.exit->exit_code) + (words.empty() ? "" : ", " + words);
  }
  if (pod.waiting_reason.empty()) return pod.reason;
  return pod.waiting_reason + (pod.waiting_message.empty() ? "" : ": " + pod.waiting_message);
}

bool is_ordinary(const Pod& pod) {
  return pod.phase == PodPhase::running && pod.ready && !pod.meta.deletion_time;
}

}  // namespace job_words
}  // namespace tj
