#include "cli/run_report.h"

#include <array>
#include <cstdio>

namespace tj {
namespace {

using Row = std::array<std::string, 5>;

/// Stopped is no phase of a pod: it tells a worker that was ended on purpose from one that failed
/// by itself.
std::string phase_text(const PodReport& report) {
  if (report.stopped && report.phase == PodPhase::failed) return "Stopped";
  return to_string(report.phase);
}

std::string seconds_text(const PodReport& report) {
  if (!report.started_at || !report.exit || !report.exit->finished_at) return "-";
  const std::chrono::duration<double> ran = *report.exit->finished_at - *report.started_at;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", ran.count());
  return text;
}

std::string path_text(const std::filesystem::path& path, const std::filesystem::path& folder) {
  if (path.empty()) return "-";
  const auto relative = path.lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

Row row_of(const PodReport& report, const std::filesystem::path& folder) {
  const std::string name = report.pod.worker_index < 0
                               ? report.pod.name
                               : "worker-" + std::to_string(report.pod.worker_index);
  return {name, phase_text(report), report.exit ? std::to_string(report.exit->exit_code) : "-",
          seconds_text(report), path_text(report.log_file, folder)};
}

/// "1/2 workers ready, 1 succeeded": who has done its work is ready no more.
std::string workers_text(const JobStatus& status) {
  const auto succeeded = status.workers.succeeded;
  return status.ready_text + " workers ready" +
         (succeeded > 0 ? ", " + std::to_string(succeeded) + " succeeded" : "");
}

}  // namespace

std::string status_line(const TrainingJob& job) {
  const JobStatus& status = job.status;
  std::string text = "job " + job.meta.name + ": " + to_string(status.phase);
  const bool counts_matter = status.phase == Phase::starting || status.phase == Phase::running;
  if (counts_matter && !status.ready_text.empty()) text += " (" + workers_text(status) + ")";
  if (is_terminal(status.phase)) text += " (" + status.reason + ")";
  const bool message_matters = status.phase != Phase::running && !status.message.empty();
  if (message_matters) text += ": " + status.message;
  while (text.ends_with('\n')) text.pop_back();  // a message may quote the end of a log
  return text;
}

std::string worker_table(const std::vector<PodReport>& reports,
                         const std::filesystem::path& folder) {
  std::vector<Row> rows = {{"WORKER", "PHASE", "EXIT", "SECONDS", "LOG"}};
  for (const PodReport& report : reports) rows.push_back(row_of(report, folder));
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace tj
