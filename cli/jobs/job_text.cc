#include "cli/jobs/job_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/jobs/job_words.h"
#include "cli/jobs/table.h"
#include "cli/plain_text.h"

namespace tj {
namespace {

using std::chrono::seconds;
using namespace job_words;

constexpr std::size_t kBarWidth = 24;
constexpr std::size_t kNodesShownMax = 6;
constexpr std::size_t kRanksShownMax = 16;  // of a job with more, the ordinary ones are counted

/// `text` after its name, on lines of its own.
std::string field(const std::string& name, const std::string& text) {
  if (text.empty()) return "";
  return name + std::string(12 - std::min<std::size_t>(name.size(), 11), ' ') + plain_line(text) +
         "\n";
}

std::string phase_sentence(const JobView& view) {
  const JobStatus& status = view.job.status;
  std::string text = phase_text(view);
  if (const std::string word = reason(view); !word.empty()) text += " (" + word + ")";
  if (phase_text(view) == "Interrupted")
    return text + ": its tj run has ended; it was " + to_string(status.phase);
  if (status.phase == Phase::pending && status.reason.empty())
    return text + ": no operator has looked at it yet";
  return status.message.empty() ? text : text + ": " + status.message;
}

std::string ranks_text(const JobView& view) {
  const ReplicaStatus& workers = view.job.status.workers;
  std::string text = ready(view) + " ready";
  const auto add = [&text](int count, const char* what) {
    if (count > 0) text += ", " + std::to_string(count) + " " + what;
  };
  add(workers.succeeded, "succeeded");
  add(workers.failed, "failed");
  add(workers.terminating, "terminating");
  return text;
}

std::string nodes_text(const JobView& view) {
  std::set<std::string> nodes;
  for (const Pod& pod : view.pods) {
    if (!pod.node.empty()) nodes.insert(pod.node);
  }
  if (nodes.empty()) return "";
  std::string text = std::to_string(nodes.size()) + ":";
  std::size_t shown = 0;
  for (const std::string& node : nodes) {
    if (shown++ == kNodesShownMax)
      return text + " and " + std::to_string(nodes.size() - kNodesShownMax) + " more";
    text += (shown > 1 ? ", " : " ") + node;
  }
  return text;
}

std::string attempt_text(const JobView& view) {
  const JobStatus& status = view.job.status;
  std::string text = std::to_string(status.attempt);
  if (is_over(view)) {
    const std::string ended = ago(status.completion_time, view.now);
    return ended.empty() ? text : text + ", ended " + ended + " ago";
  }
  const auto& begins = status.attempt_start_time;
  if (begins && *begins > view.now)
    return text + ", begins in " + duration_text(std::chrono::ceil<seconds>(*begins - view.now));
  if (begins) text += ", since " + ago(begins, view.now);
  return text;
}

std::string restarts_text(const JobView& view) {
  const JobStatus& status = view.job.status;
  std::string text = std::to_string(status.restarts);
  if (status.restarts == 0) return text;
  return text + " (" + std::to_string(status.restarts_counted) + " of at most " +
         std::to_string(view.job.spec.run.max_restarts) + " that count, " +
         std::to_string(status.restarts_uncounted) + " that do not)";
}

std::string progress_sentence(const JobView& view) {
  const JobStatus& status = view.job.status;
  if (!status.progress) {
    if (view.is_local) return "not known: a local run is not asked; its logs say it";
    return view.job.progress_port
               ? "not known: rank 0 has told none"
               : "not known: the annotation kubebrain.io/progress-port turns it off";
  }
  const JobProgress& told = *status.progress;
  std::string text = progress_bar(told.step, told.total_steps, kBarWidth);
  text += (text.empty() ? "step " : " ") + to_text(told);
  if (!told.phase.empty()) text += ", " + told.phase;
  if (const std::string left = eta(view); !left.empty()) text += ", ETA " + left;
  if (told.attempt != status.attempt) text += " (of attempt " + std::to_string(told.attempt) + ")";
  if (told.updated_at && !is_over(view))
    text += ", said " + ago(told.updated_at, view.now) + " ago";
  return text;
}

std::string rate_text(const JobView& view) {
  const auto& told = view.job.status.progress;
  if (!told || !told->tokens_per_second) return "";
  std::string text = number_text(*told->tokens_per_second) + " tokens/s of all ranks";
  if (told->mfu) text += ", MFU " + number_text(*told->mfu * 100) + " %";
  return text;
}

std::string failure_text(const JobView& view) {
  const auto& failure = view.job.status.first_failure;
  if (!failure) return "";
  std::string text = "rank " + std::to_string(failure->rank) + " of attempt " +
                     std::to_string(failure->attempt) + ": " + to_string(failure->cause);
  if (failure->exit_code) text += ", exit code " + std::to_string(*failure->exit_code);
  if (!failure->node.empty()) text += ", on node " + failure->node;
  if (!failure->reason.empty()) text += ", " + failure->reason;
  if (!failure->message.empty()) text += ": " + failure->message;
  return text;
}

std::string checkpoint_text(const JobView& view) {
  const auto& saved = view.job.status.last_checkpoint;
  if (!saved) return "";
  return "step " + std::to_string(saved->step) + (saved->path.empty() ? "" : ", " + saved->path);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string ranks_table(const JobView& view) {
  if (view.pods.empty()) return "";
  const bool shows_all = view.pods.size() <= kRanksShownMax;
  std::vector<Row> rows = {{"RANK", "PHASE", "READY", "ATTEMPT", "NODE", "AGE", "NOTE"}};
  std::size_t left_out = 0;
  for (const Pod& pod : view.pods) {
    const bool is_shown = shows_all || (!is_ordinary(pod) && rows.size() <= kRanksShownMax);
    if (!is_shown) {
      ++left_out;
      continue;
    }
    rows.push_back({std::to_string(pod.worker_index), phase_of(pod), pod.ready ? "yes" : "no",
                    std::to_string(pod.attempt), pod.node, ago(pod.meta.creation_time, view.now),
                    cut_line(note_on(view, pod), 100)});
  }
  std::string text = "\n" + (rows.size() > 1 ? table_text(rows) : "");
  if (left_out > 0) text += "and " + std::to_string(left_out) + " more ranks (tj top shows each)\n";
  return text;
}

}  // namespace

std::string status_text(const JobView& view) {
  std::string text = field("job", view.job.meta.name + " (namespace " + view.job.meta.ns + ")");
  text += field("phase", phase_sentence(view));
  text += field("ranks", ranks_text(view));
  text += field("nodes", nodes_text(view));
  text += field("attempt", attempt_text(view));
  text += field("restarts", restarts_text(view));
  text += field("progress", progress_sentence(view));
  text += field("loss", loss(view));
  text += field("rate", rate_text(view));
  text += field("goodput", "not in the status; the trainer tells it at its end and in /metrics");
  text += field("checkpoint", checkpoint_text(view));
  text += field("failure", cut_line(failure_text(view), 400));
  text += field("excluded", joined(view.job.status.excluded_nodes));
  text += field("invalid", view.job.spec_error.value_or(""));
  return text + ranks_table(view);
}

std::string summary_line(const JobView& view) {
  const JobStatus& status = view.job.status;
  std::string text = "job " + view.job.meta.name + ": " + phase_text(view);
  if (!is_terminal(status.phase)) text += " (" + ready(view) + " ready)";
  text += ", attempt " + std::to_string(status.attempt);
  if (const std::string done = progress(view); !done.empty()) text += ", " + done;
  if (const std::string told = loss(view); !told.empty()) text += ", loss " + told;
  const bool has_words = status.phase != Phase::running && !status.message.empty();
  if (has_words) text += ": " + status.message;
  return plain_line(text);
}

std::string top_text(const JobView& view) {
  const auto& told = view.job.status.progress;
  std::string text = field("job", view.job.meta.name + ": " + phase_text(view));
  text += field("progress", progress_sentence(view));
  text += field("loss", loss(view));
  text += field("rate", rate_text(view));
  const bool has_rate = told && told->tokens_per_second && !view.pods.empty();
  const std::string share =
      has_rate ? number_text(*told->tokens_per_second / static_cast<double>(view.pods.size())) : "";
  std::vector<Row> rows = {{"RANK", "PHASE", "READY", "AGE", "TOKENS/S", "MEMORY", "NODE", "POD"}};
  for (const Pod& pod : view.pods) {
    rows.push_back({std::to_string(pod.worker_index), phase_of(pod), pod.ready ? "yes" : "no",
                    ago(pod.meta.creation_time, view.now), is_ordinary(pod) ? share : "", "",
                    pod.node, pod.meta.name});
  }
  text += "\n" + table_text(rows) + "\n";
  if (has_rate) {
    text += "TOKENS/S is an equal share: rank 0 tells one rate for all ranks.\n";
  } else {
    text += "Rates are not known: rank 0 has told none.\n";
  }
  if (view.is_local)
    return text + "Memory is not known here: ps and top of this machine show it.\n";
  return text + "Memory is not known here: kubectl top pod -l job-name=" + view.job.meta.name +
         " asks the cluster's metrics server.\n";
}

}  // namespace tj
