#include "cli/logs/local_logs.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "cli/run_report.h"
#include "operator/api/json.h"
#include "operator/api/read.h"

namespace tj {
namespace {

LogTime now() { return std::chrono::system_clock::now(); }

void wait(std::chrono::milliseconds duration) {
  boost::asio::io_context loop;
  boost::asio::steady_timer timer(loop, duration);
  timer.wait();
}

int worker_count_of(const TrainingJob& job) {
  return job.status.world_size > 0 ? job.status.world_size : job.spec.worker_count;
}

}  // namespace

LocalLogs::LocalLogs(RunEntry run, const LogsOptions& options, LogPrinter& printer)
    : run_(std::move(run)), options_(options), printer_(printer) {}

Result<TrainingJob> LocalLogs::read_job() const {
  const auto objects = read_run_objects(run_.folder);
  if (!objects) return objects.error();
  for (const auto& object : objects->jobs) {
    if (auto job = job_from_json(object); job && job->meta.name == options_.job) return job;
  }
  return Error{Code::not_found, "holds no job " + options_.job, run_.folder.string(), {}};
}

std::filesystem::path LocalLogs::path_of(int attempt, int rank) const {
  auto path = run_log_file(run_.folder, names::worker_pod(options_.job, rank), attempt,
                           options_.selection.container);
  if (options_.previous) path.replace_extension(".previous.log");
  return path;
}

void LocalLogs::find_files(const TrainingJob& job, int attempt) {
  const auto& ranks = options_.selection.ranks;
  for (int rank = 0; rank < worker_count_of(job); ++rank) {
    const auto path = path_of(attempt, rank);
    std::error_code failure;
    const bool is_wanted = (!ranks || ranks->contains(rank)) && !files_.contains({attempt, rank});
    if (!is_wanted || !std::filesystem::is_regular_file(path, failure)) continue;
    const auto added = files_.emplace(Key{attempt, rank}, LogFile(path)).first;
    if (options_.tail_lines) added->second.seek_to_tail(*options_.tail_lines);
  }
  const auto of_attempt = [attempt](const auto& each) { return each.first.first == attempt; };
  printer_.folder().set_rank_count(
      static_cast<int>(std::count_if(files_.begin(), files_.end(), of_attempt)));
}

bool LocalLogs::read_files(bool is_final) {
  bool any = false;
  for (bool goes_on = true; goes_on && printer_.is_read();) {
    goes_on = false;
    for (auto& [key, file] : files_) {
      const bool has_more = file.read(1, is_final, [&, rank = key.second](std::string_view line) {
        any = true;
        printer_.folder().add(rank, now(), line, now());
      });
      goes_on = goes_on || has_more;
    }
  }
  return any;
}

Result<void> LocalLogs::follow(const TrainingJob& begun) {
  std::string said;
  TrainingJob job = begun;
  for (bool is_over = false; !is_over && printer_.is_read();) {
    const auto run = find_run(options_.job);
    const bool lives = run && run->folder == run_.folder && run->is_alive;
    if (auto read = read_job()) job = *std::move(read);
    // An attempt may have come and gone since the last look.
    for (int attempt = begun.status.attempt; attempt <= job.status.attempt; ++attempt) {
      const auto& wanted = options_.selection.attempt;
      if (!wanted || *wanted == attempt) find_files(job, attempt);
    }
    if (const std::string line = status_line(job); line != said) {
      printer_.note(line);
      said = line;
    }
    is_over = !lives;
    const bool any = read_files(/*is_final=*/is_over);
    printer_.folder().advance(now());
    (void)printer_.flush();
    if (!any && !is_over) wait(kLookAgain);
  }
  return {};
}

Result<void> LocalLogs::run() {
  const auto job = read_job();
  if (!job) return job.error();
  const int attempt = options_.selection.attempt.value_or(job->status.attempt);
  find_files(*job, attempt);
  if (files_.empty() && !options_.follow) {
    return Error{Code::not_found,
                 "has no log of " + options_.job + " for this choice; the first would be " +
                     path_of(attempt, 0).filename().string(),
                 run_.folder.string(),
                 {}};
  }
  const auto done = options_.follow ? follow(*job) : Result<void>{};
  if (!options_.follow) read_files(/*is_final=*/true);
  printer_.folder().flush();
  (void)printer_.flush();
  return done;
}

}  // namespace tj
