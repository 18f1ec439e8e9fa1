#include "cli/ui/board.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "contract/utf8.h"
#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/local/pod_status.h"

namespace tj::ui {
namespace {

using nlohmann::json;

std::string uid_of(const json& object) {
  return read::string_at(read::object_at(object, "metadata"), "uid");
}

std::string bounded(const std::string& text) {
  return std::string(utf8_prefix(text, Board::kMessageBytesMax));
}

/// When the main container began, where it runs; trim_pod leaves that out.
std::optional<TimePoint> running_since(const json& pod) {
  const std::string main = read::string_at(main_container(pod), "name");
  for (const json& status : read::array_at(read::object_at(pod, "status"), "containerStatuses")) {
    if (read::string_at(status, "name") != main) continue;
    return read::time_at(read::object_at(read::object_at(status, "state"), "running"), "startedAt");
  }
  return {};
}

WorkerLife life_of(const Pod& pod, const json& object) {
  WorkerLife life{.rank = pod.worker_index,
                  .attempt = pod.attempt,
                  .pod = pod.meta.name,
                  .node = pod.node,
                  .state = to_string(pod.phase)};
  life.created = pod.meta.creation_time;
  life.started = pod.exit ? pod.exit->started_at : running_since(object);
  life.reason = pod.exit ? pod.exit->reason : pod.waiting_reason;
  life.message = bounded(pod.exit ? pod.exit->message : pod.waiting_message);
  if (!pod.reason.empty()) life.reason = pod.reason;
  if (pod.exit) {
    life.exit_code = pod.exit->exit_code;
    life.ended = pod.exit->finished_at;
  }
  return life;
}

bool has_ended_state(const WorkerLife& life) {
  return life.state == "Succeeded" || life.state == "Failed" || life.state == "Gone";
}

/// The key of a life that only a log tells of, in place of a pod's uid.
bool is_of_log(const std::string& key) { return key.starts_with("log "); }

}  // namespace

ListedNames::Change ListedNames::take(const WatchDelta& delta) {
  Change change;
  if (const auto* upsert = std::get_if<Upsert>(&delta)) {
    known_.insert(uid_of(*upsert->object));
    change.there.push_back(upsert->object);
  } else if (const auto* erase = std::get_if<Erase>(&delta)) {
    known_.erase(uid_of(*erase->object));
    change.gone.push_back(uid_of(*erase->object));
  } else if (const auto* page = std::get_if<Replace>(&delta)) {
    if (!page->continues) listed_.clear();
    for (const std::string& text : page->objects) {
      auto object = std::make_shared<const json>(read::parse(text));
      listed_.insert(uid_of(*object));
      change.there.push_back(std::move(object));
    }
    const bool is_complete = !page->resource_version.empty();
    if (!is_complete) return change;
    std::ranges::set_difference(known_, listed_, std::back_inserter(change.gone));
    known_ = std::exchange(listed_, {});
  }
  return change;
}

void Board::apply_jobs(const WatchDelta& delta, TimePoint now) {
  const auto change = listed_jobs_.take(delta);
  for (const std::string& uid : change.gone) {
    const auto found = job_of_uid_.find(uid);
    if (found == job_of_uid_.end()) continue;
    records_.erase(found->second);
    std::erase_if(job_of_pod_uid_,
                  [&found](const auto& entry) { return entry.second == found->second; });
    job_of_uid_.erase(found);
  }
  for (const auto& object : change.there) put_job(*object, now);
}

void Board::put_job(const json& object, TimePoint now) {
  auto job = job_from_json(object);
  if (!job) return;
  const ObjectKey key = job->meta.key();
  Record& record = records_[key];
  const bool is_another = !record.job.meta.uid.empty() && record.job.meta.uid != job->meta.uid;
  if (is_another) {
    job_of_uid_.erase(record.job.meta.uid);
    record = Record{};
  }
  record.job = *std::move(job);
  job_of_uid_[record.job.meta.uid] = key;
  const JobStatus& status = record.job.status;
  if (status.first_failure) record.failures[status.first_failure->attempt] = *status.first_failure;
  const auto start = status.attempt_start_time ? status.attempt_start_time : status.start_time;
  if (start) record.starts[status.attempt] = *start;
  if (const auto& progress = status.progress) {
    const auto time = progress->updated_at.value_or(now).time_since_epoch();
    SeriesPoint point{.time = std::chrono::duration<double>(time).count(),
                      .step = progress->step,
                      .value = progress->loss.value_or(0)};
    if (progress->loss) record.sampled.loss.add(point);
    point.value = progress->tokens_per_second.value_or(0);
    if (progress->tokens_per_second) record.sampled.rate.add(point);
  }
}

void Board::apply_pods(const WatchDelta& delta, TimePoint now) {
  const auto change = listed_pods_.take(delta);
  for (const auto& object : change.there) put_pod(*object, now);
  for (const std::string& uid : change.gone) {
    const auto job = job_of_pod_uid_.find(uid);
    if (job == job_of_pod_uid_.end()) continue;
    if (const auto record = records_.find(job->second); record != records_.end()) {
      const auto life = record->second.lives.find(uid);
      if (life != record->second.lives.end() && !has_ended_state(life->second)) {
        life->second.state = "Gone";
        life->second.ended = now;
      }
    }
    job_of_pod_uid_.erase(job);
  }
}

void Board::put_pod(const json& object, TimePoint now) {
  const auto pod = trim_pod(object);
  const bool is_worker = pod && pod->worker_index >= 0 && pod->attempt >= 0;
  if (!is_worker) return;
  const ObjectKey key{pod->meta.ns, pod->job_name};
  const auto found = records_.find(key);
  // Jobs are listed before pods; what is not there now was a job's that has gone.
  if (found == records_.end()) return;
  Record& record = found->second;
  job_of_pod_uid_[pod->meta.uid] = key;
  WorkerLife life = life_of(*pod, object);
  if (has_ended_state(life) && !life.ended) life.ended = now;
  std::erase_if(record.lives, [&life](const auto& entry) {
    return is_of_log(entry.first) && entry.second.rank == life.rank &&
           entry.second.attempt == life.attempt;
  });
  record.lives[pod->meta.uid] = std::move(life);
  forget_old_lives(record);
}

void Board::forget_old_lives(Record& record) {
  while (record.lives.size() > kLivesMax) {
    int oldest = record.lives.begin()->second.attempt;
    for (const auto& [uid, life] : record.lives) oldest = std::min(oldest, life.attempt);
    const auto forgotten = std::erase_if(
        record.lives, [oldest](const auto& entry) { return entry.second.attempt == oldest; });
    if (forgotten == 0) return;
  }
}

void Board::add_past_life(const ObjectKey& job, WorkerLife life) {
  const auto found = records_.find(job);
  if (found == records_.end()) return;
  for (const auto& [uid, known] : found->second.lives) {
    if (known.rank == life.rank && known.attempt == life.attempt) return;
  }
  found->second.lives["log " + life.pod + " " + std::to_string(life.attempt)] = std::move(life);
  forget_old_lives(found->second);
}

void Board::interrupt(const ObjectKey& job, TimePoint since) {
  const auto found = records_.find(job);
  if (found == records_.end() || is_terminal(found->second.job.status.phase)) return;
  Record& record = found->second;
  record.interrupted_at = since;
  for (auto& [uid, life] : record.lives) {
    if (has_ended_state(life)) continue;
    life.state = "Gone";
    life.ended = since;
  }
}

void Board::set_events(const ObjectKey& job, const std::vector<json>& events) {
  const auto found = records_.find(job);
  if (found == records_.end()) return;
  std::vector<json>& shown = found->second.events;
  shown.clear();
  for (const json& event : events) {
    auto time = read::time_at(event, "lastTimestamp");
    if (!time) time = read::time_at(event, "eventTime");
    if (!time) time = read::time_at(read::object_at(event, "metadata"), "creationTimestamp");
    const json& about = read::object_at(event, "involvedObject");
    shown.push_back(
        {{"time",
          time ? json(static_cast<double>(time->time_since_epoch().count()) / 1e3) : json()},
         {"type", read::string_at(event, "type")},
         {"reason", read::string_at(event, "reason")},
         {"message", bounded(read::string_at(event, "message"))},
         {"object", read::string_at(about, "kind") + " " + read::string_at(about, "name")},
         {"count", std::max(1, read::number_at(event, "count", 1))}});
  }
  std::ranges::stable_sort(shown, [](const json& left, const json& right) {
    return read::maybe_real_at(left, "time").value_or(0) >
           read::maybe_real_at(right, "time").value_or(0);
  });
  if (shown.size() > kEventsMax) shown.resize(kEventsMax);
}

void Board::set_files(const ObjectKey& job, const RunFiles& files) {
  const auto found = records_.find(job);
  if (found == records_.end()) return;
  found->second.files = files.series();
  found->second.file_progress = files.progress();
  found->second.checkpoints = files.checkpoints();
}

const TrainingJob* Board::find(const ObjectKey& job) const {
  const auto found = records_.find(job);
  return found == records_.end() ? nullptr : &found->second.job;
}

std::vector<ObjectKey> Board::jobs() const {
  std::vector<ObjectKey> keys;
  for (const auto& [key, record] : records_) keys.push_back(key);
  return keys;
}

bool Board::has_ended(const ObjectKey& job, int rank, int attempt) const {
  const auto found = records_.find(job);
  if (found == records_.end()) return true;
  const Record& record = found->second;
  const bool is_over = is_terminal(record.job.status.phase) || record.interrupted_at.has_value();
  if (is_over || attempt < record.job.status.attempt) return true;
  return std::ranges::any_of(record.lives, [rank, attempt](const auto& entry) {
    const WorkerLife& life = entry.second;
    return life.rank == rank && life.attempt == attempt && has_ended_state(life);
  });
}

std::string Board::pod_uid(const ObjectKey& job, int rank, int attempt) const {
  const auto found = records_.find(job);
  if (found == records_.end()) return "";
  std::string newest;
  std::optional<TimePoint> created;
  for (const auto& [uid, life] : found->second.lives) {
    const bool is_meant = life.rank == rank && life.attempt == attempt && !is_of_log(uid);
    if (!is_meant || (!newest.empty() && life.created < created)) continue;
    newest = uid;
    created = life.created;
  }
  return newest;
}

const RunSeries& Board::series_of(const Record& record) {
  const bool files_say_more = record.files != nullptr && !record.files->loss.empty();
  return files_say_more ? *record.files : record.sampled;
}

std::optional<json> Board::series_document(const ObjectKey& job) const {
  const auto found = records_.find(job);
  if (found == records_.end()) return {};
  return to_json(series_of(found->second));
}

}  // namespace tj::ui
