// The documents that the page asks for, out of what the board knows.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/ui/board.h"

namespace tj::ui {
namespace {

using nlohmann::json;

constexpr std::size_t kSparkPointsMax = 60;

json seconds(const std::optional<TimePoint>& time) {
  if (!time) return nullptr;
  return static_cast<double>(time->time_since_epoch().count()) / 1e3;
}

template <typename Value>
json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json to_json(const JobProgress& progress) {
  return {{"attempt", progress.attempt},
          {"step", progress.step},
          {"steps", progress.total_steps},
          {"phase", progress.phase},
          {"percent", or_null(percent_of(progress))},
          {"eta_seconds", or_null(progress.eta_seconds)},
          {"loss", or_null(progress.loss)},
          {"rate", or_null(progress.tokens_per_second)},
          {"mfu", or_null(progress.mfu)},
          {"updated", seconds(progress.updated_at)}};
}

json to_json(const FirstFailure& failure) {
  return {{"rank", failure.rank},
          {"node", failure.node},
          {"cause", to_string(failure.cause)},
          {"exit_code", or_null(failure.exit_code)},
          {"reason", failure.reason},
          {"message", failure.message},
          {"time", seconds(failure.finished_at)},
          {"step", or_null(failure.step)},
          {"collateral", failure.collateral_count}};
}

json to_json(const WorkerLife& life) {
  return {{"attempt", life.attempt},
          {"pod", life.pod},
          {"node", life.node},
          {"state", life.state},
          {"created", seconds(life.created)},
          {"started", seconds(life.started)},
          {"ended", seconds(life.ended)},
          {"exit_code", or_null(life.exit_code)},
          {"reason", life.reason},
          {"message", life.message}};
}

/// A pod may have been deleted before it was seen to end; the job's status says how it did.
WorkerLife with_failure(WorkerLife life, const std::map<int, FirstFailure>& failures) {
  const auto failure = failures.find(life.attempt);
  if (failure == failures.end() || failure->second.rank != life.rank) return life;
  const bool was_not_seen_to_end = life.state == "Gone";
  if (was_not_seen_to_end) life.state = "Failed";
  if (was_not_seen_to_end && failure->second.finished_at) life.ended = failure->second.finished_at;
  if (!life.exit_code) life.exit_code = failure->second.exit_code;
  if (life.reason.empty()) life.reason = failure->second.reason;
  if (life.message.empty()) life.message = failure->second.message;
  return life;
}

auto age_of(const WorkerLife& life) {
  return std::tuple(life.attempt, life.created.value_or(TimePoint{}));
}

}  // namespace

/// A program that serves no /progress may still write how far it is.
json Board::progress_of(const Record& record) {
  std::optional<JobProgress> progress = record.job.status.progress;
  const auto& files = record.file_progress;
  const bool is_behind = files && (!progress || progress->step < files->step);
  if (is_behind) {
    if (!progress) progress.emplace(JobProgress{.attempt = record.job.status.attempt});
    progress->step = files->step;
    if (files->steps > 0) progress->total_steps = files->steps;
  }
  return progress ? to_json(*progress) : json();
}

json Board::summary_of(const Record& record) {
  const TrainingJob& job = record.job;
  const JobStatus& status = job.status;
  return {{"namespace", job.meta.ns},
          {"name", job.meta.name},
          {"uid", job.meta.uid},
          {"phase", record.interrupted_at ? "Interrupted" : to_string(status.phase)},
          {"reason", record.interrupted_at ? "its tj run has gone" : status.reason},
          {"message", status.message},
          {"workers", job.spec.worker_count},
          {"ready", status.workers.ready},
          {"succeeded", status.workers.succeeded},
          {"failed", status.workers.failed},
          {"attempt", status.attempt},
          {"restarts", status.restarts},
          {"restarts_max", job.spec.run.max_restarts},
          {"created", seconds(job.meta.creation_time)},
          {"started", seconds(status.start_time)},
          {"completed",
           seconds(record.interrupted_at ? record.interrupted_at : status.completion_time)},
          {"progress", progress_of(record)}};
}

json Board::jobs_document() const {
  std::vector<const Record*> newest_first;
  for (const auto& [key, record] : records_) newest_first.push_back(&record);
  std::ranges::stable_sort(newest_first, std::greater{}, [](const Record* record) {
    return record->job.meta.creation_time.value_or(TimePoint{});
  });
  json jobs = json::array();
  for (const Record* record : newest_first) {
    json job = summary_of(*record);
    job["spark"] = sparkline(series_of(*record).loss, kSparkPointsMax);
    jobs.push_back(std::move(job));
  }
  return {{"jobs", std::move(jobs)}};
}

json Board::attempts_of(const Record& record) {
  struct Times {
    std::optional<TimePoint> start;
    std::optional<TimePoint> end;
    bool all_ended = true;
  };
  std::map<int, Times> attempts;
  for (const auto& [uid, life] : record.lives) {
    Times& times = attempts[life.attempt];
    if (life.created && (!times.start || *life.created < *times.start)) times.start = life.created;
    if (life.ended && (!times.end || *life.ended > *times.end)) times.end = life.ended;
    times.all_ended = times.all_ended && life.ended.has_value();
  }
  for (const auto& [attempt, start] : record.starts) attempts[attempt].start = start;
  for (const auto& [attempt, failure] : record.failures) attempts.try_emplace(attempt);
  attempts.try_emplace(record.job.status.attempt);
  json list = json::array();
  for (const auto& [attempt, times] : attempts) {
    const auto failure = record.failures.find(attempt);
    list.push_back(
        {{"attempt", attempt},
         {"start", seconds(times.start)},
         {"end", times.all_ended ? seconds(times.end) : json()},
         {"first_failure", failure == record.failures.end() ? json() : to_json(failure->second)}});
  }
  return list;
}

json Board::ranks_of(const Record& record, RankRange ranks) {
  int total = record.job.spec.worker_count;
  for (const auto& [uid, life] : record.lives) total = std::max(total, life.rank + 1);
  const int from = std::clamp(ranks.from, 0, std::max(0, total - 1));
  const int count = std::clamp(std::min(ranks.count, kRanksMax), 1, std::max(1, total - from));
  std::vector<std::vector<const WorkerLife*>> rows(static_cast<std::size_t>(count));
  for (const auto& [uid, life] : record.lives) {
    if (life.rank >= from && life.rank < from + count)
      rows[static_cast<std::size_t>(life.rank - from)].push_back(&life);
  }
  json list = json::array();
  for (auto& row : rows) {
    std::ranges::sort(row, {}, [](const WorkerLife* life) { return age_of(*life); });
    json lives = json::array();
    for (const WorkerLife* life : row)
      lives.push_back(to_json(with_failure(*life, record.failures)));
    list.push_back({{"rank", from + static_cast<int>(list.size())}, {"lives", std::move(lives)}});
  }
  return {{"total", total}, {"from", from}, {"rows", std::move(list)}};
}

json Board::nodes_of(const Record& record) {
  struct Counts {
    int workers = 0;
    int running = 0;
    int failures = 0;
    bool is_excluded = false;
  };
  const JobStatus& status = record.job.status;
  std::map<std::string, Counts> nodes;
  for (const auto& [uid, life] : record.lives) {
    if (life.attempt != status.attempt || life.node.empty()) continue;
    Counts& counts = nodes[life.node];
    ++counts.workers;
    if (life.state == "Running") ++counts.running;
  }
  for (const NodeFailures& failures : status.node_failures)
    nodes[failures.node].failures = failures.count;
  for (const std::string& node : status.excluded_nodes) nodes[node].is_excluded = true;
  json list = json::array();
  for (const auto& [node, counts] : nodes) {
    list.push_back({{"node", node},
                    {"workers", counts.workers},
                    {"running", counts.running},
                    {"failures", counts.failures},
                    {"excluded", counts.is_excluded}});
  }
  return list;
}

/// The newest first.
json Board::checkpoints_of(const Record& record) {
  auto checkpoints = record.checkpoints;
  const auto& last = record.job.status.last_checkpoint;
  if (last) checkpoints[last->step] = last->path;
  json list = json::array();
  for (auto entry = checkpoints.rbegin(); entry != checkpoints.rend(); ++entry) {
    const bool is_last = last && last->step == entry->first;
    list.push_back({{"step", entry->first},
                    {"path", entry->second},
                    {"time", is_last ? seconds(last->time) : json()}});
  }
  return list;
}

std::optional<json> Board::job_document(const ObjectKey& job, RankRange ranks) const {
  const auto found = records_.find(job);
  if (found == records_.end()) return {};
  const Record& record = found->second;
  json troubled = json::array();
  for (const TroubledRank& rank : record.job.status.troubled_ranks) {
    troubled.push_back({{"rank", rank.rank},
                        {"pod", rank.pod},
                        {"node", rank.node},
                        {"reason", rank.reason},
                        {"message", rank.message}});
  }
  return json{{"job", summary_of(record)},
              {"troubled", std::move(troubled)},
              {"attempts", attempts_of(record)},
              {"ranks", ranks_of(record, ranks)},
              {"nodes", nodes_of(record)},
              {"events", record.events},
              {"checkpoints", checkpoints_of(record)}};
}

}  // namespace tj::ui
