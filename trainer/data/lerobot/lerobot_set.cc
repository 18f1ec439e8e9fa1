#include "trainer/data/lerobot/lerobot_set.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "trainer/data/parquet/parquet_numbers.h"
#include "trainer/data/parquet/parquet_plugin.h"
#include "trainer/process/crew.h"
#include "trainer/process/data_file.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

/// Of states and actions together: what a rank keeps in memory.
constexpr std::int64_t kNumbersBytesMax = std::int64_t{32} << 30;
constexpr std::chrono::seconds kTellInterval{60};

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

/// The columns of one file of frames.
struct DataColumns {
  std::vector<float> state, action, timestamps;
  std::vector<std::int64_t> episodes, frames, tasks;
};

/// Which frames of the data set a file holds.
struct DataFileFrames {
  std::size_t first_episode = 0;
  std::size_t end_episode = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class SetReader {
 public:
  explicit SetReader(const LeRobotRequest& request) : request_(request) {}

  Result<LeRobotSet> read() {
    if (auto begun = begin(); !begun) return begun.error();
    if (auto placed = place_files(); !placed) return placed.error();
    Crew crew(request_.stop_signal);
    const auto work = [&]() -> std::optional<Failure> {
      while (!crew.is_stopping()) {
        const std::size_t next = next_++;
        if (next >= files_.size()) break;
        if (const auto done = read_file(next); !done) return keep(done.error());
        ++read_count_;
      }
      return std::nullopt;
    };
    const auto threads = std::clamp<int>(request_.threads, 1, static_cast<int>(files_.size()));
    if (const auto failed = crew.run(threads, work, kTellInterval, [] {})) {
      const std::scoped_lock lock(mutex_);
      if (!error_) return Error{.code = Code::internal, .message = failed->message, .subject = {}};
      return *error_;
    }
    if (read_count_ != files_.size())
      return Error{.code = Code::unavailable, .message = "asked to stop", .subject = subject()};
    if (auto marked = set_fingerprint(); !marked) return marked.error();
    return std::move(set_);
  }

 private:
  std::string subject() const { return request_.flag + " " + request_.folder.string(); }

  Failure keep(const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = error;
    return bad_data(error);
  }

  Result<void> begin() {
    set_.folder = request_.folder;
    set_.name = fs::absolute(request_.folder).lexically_normal().filename().string();
    if (set_.name.empty())
      set_.name = fs::absolute(request_.folder).lexically_normal().parent_path().filename();
    auto info = read_lerobot_info(request_.folder, request_.flag);
    if (!info) return info.error();
    set_.info = std::move(*info);
    const auto plugin = load_parquet_plugin(request_.parquet_plugin);
    if (!plugin) return plugin.error();
    plugin_ = *plugin;
    for (const auto& [name, into] :
         {std::pair(&request_.state, &set_.state), std::pair(&request_.action, &set_.action)})
      if (const auto found = find_feature(*name, *into); !found) return found;
    auto meta = read_lerobot_meta(request_.folder, set_.info, *plugin_);
    if (!meta) return meta.error();
    set_.meta = std::move(*meta);
    return {};
  }

  Result<void> find_feature(const std::string& name, FrameNumbers& into) const {
    const auto found = set_.info.features.find(name);
    if (found == set_.info.features.end())
      return wrong(subject(), "has no feature \"" + name + "\"; its features of numbers are " +
                                  set_.info.vectors_text());
    const auto& feature = found->second;
    if (feature.is_camera() || feature.dtype == "string" || feature.width() > kLeRobotWidthMax)
      return wrong(subject(), "its feature \"" + name + "\" is " + feature.dtype + " of " +
                                  std::to_string(feature.width()) + ", and no row of up to " +
                                  std::to_string(kLeRobotWidthMax) + " numbers");
    into.width = feature.width();
    return {};
  }

  /// Files follow each other as their episodes do.
  Result<void> place_files() {
    files_.resize(set_.meta.data.size());
    std::size_t current = 0;
    for (std::size_t e = 0; e < set_.meta.episodes.size(); ++e) {
      const auto& episode = set_.meta.episodes[e];
      if (e > 0 && episode.data_file != current && episode.data_file != current + 1)
        return wrong(subject(), "episode " + std::to_string(e) + " lies in " +
                                    set_.meta.data[episode.data_file] +
                                    ", before episodes that come earlier");
      current = episode.data_file;
      auto& file = files_[current];
      if (file.count == 0) file = {.first_episode = e, .first = episode.first_frame};
      file.end_episode = e + 1;
      file.count += episode.length;
    }
    std::int64_t bytes = 0;
    for (const auto& name : set_.meta.data) {
      std::error_code failure;
      const auto size = fs::file_size(request_.folder / name, failure);
      if (failure)
        return wrong((request_.folder / name).string(),
                     "can't be looked at: " + failure.message() + "; meta/ says it holds frames");
      bytes += static_cast<std::int64_t>(size);
    }
    if (set_.info.frames > bytes)  // so that a lie makes no room
      return wrong(subject(), "says it has " + grouped(set_.info.frames) +
                                  " frames, and its data files have " + grouped(bytes) + " bytes");
    const auto per_frame = set_.state.width + set_.action.width + 2;
    const auto frames = set_.info.frames;
    if (frames > kNumbersBytesMax / 4 / per_frame)
      return wrong(subject(), "has " + grouped(frames) + " frames of " + std::to_string(per_frame) +
                                  " numbers, and up to " + std::to_string(kNumbersBytesMax >> 30) +
                                  " GiB of them are kept in memory; split it into several");
    return {};
  }

  /// Room is made once the first file has shown that there are such frames at all.
  void make_room() {
    const auto frames = static_cast<std::size_t>(set_.info.frames);
    set_.state.values.resize(frames * static_cast<std::size_t>(set_.state.width));
    set_.action.values.resize(frames * static_cast<std::size_t>(set_.action.width));
    set_.timestamps.resize(frames);
    set_.tasks.resize(frames);
  }

  Result<void> read_file(std::size_t number) {
    const auto path = request_.folder / set_.meta.data[number];
    auto columns = read_columns(path, files_[number]);
    if (!columns) return columns.error();
    if (auto checked = check(path, files_[number], *columns); !checked) return checked;
    std::call_once(has_room_, [this] { make_room(); });
    const auto put = [&](const std::vector<float>& from, std::vector<float>& into,
                         std::int64_t width) {
      std::ranges::copy(from, into.begin() + files_[number].first * width);
    };
    put(columns->state, set_.state.values, set_.state.width);
    put(columns->action, set_.action.values, set_.action.width);
    put(columns->timestamps, set_.timestamps, 1);
    std::ranges::transform(columns->tasks, set_.tasks.begin() + files_[number].first,
                           [](std::int64_t task) { return static_cast<std::int32_t>(task); });
    return {};
  }

  Result<DataColumns> read_columns(const fs::path& path, const DataFileFrames& frames) const {
    const auto file = NumberFile::open(*plugin_, path);
    if (!file) return file.error();
    if (file->rows() != frames.count)
      return wrong(path.string(), "has " + std::to_string(file->rows()) + " rows, and meta/ says " +
                                      std::to_string(frames.count) + " (episodes " +
                                      std::to_string(frames.first_episode) + " to " +
                                      std::to_string(frames.end_episode - 1) + ")");
    DataColumns columns;
    const auto take = [](auto column, auto& into) -> Result<void> {
      if (!column) return column.error();
      into = std::move(*column);
      return {};
    };
    Result<void> done = take(file->floats(request_.state, set_.state.width), columns.state);
    if (done) done = take(file->floats(request_.action, set_.action.width), columns.action);
    if (done) done = take(file->floats("timestamp", 1), columns.timestamps);
    if (done) done = take(file->integers("episode_index"), columns.episodes);
    if (done) done = take(file->integers("frame_index"), columns.frames);
    if (done) done = take(file->integers("task_index"), columns.tasks);
    if (!done) return done.error();
    return columns;
  }

  Result<void> check(const fs::path& path, const DataFileFrames& frames,
                     const DataColumns& columns) const {
    std::size_t row = 0;
    const auto tasks = static_cast<std::int64_t>(set_.meta.tasks.size());
    for (auto e = frames.first_episode; e < frames.end_episode; ++e) {
      for (std::int64_t frame = 0; frame < set_.meta.episodes[e].length; ++frame, ++row) {
        const auto place = "row " + std::to_string(row) + ": ";
        const auto task = columns.tasks[row];
        if (columns.episodes[row] != static_cast<std::int64_t>(e))
          return wrong(path.string(), place + "episode_index must be " + std::to_string(e) +
                                          ", and is " + std::to_string(columns.episodes[row]));
        if (columns.frames[row] != frame)
          return wrong(path.string(), place + "frame_index must be " + std::to_string(frame) +
                                          ", and is " + std::to_string(columns.frames[row]));
        if (task < 0 || task >= tasks)
          return wrong(path.string(), place + "task_index is " + std::to_string(task) +
                                          ", and meta/ has " + std::to_string(tasks) + " tasks");
      }
    }
    if (auto finite = check_finite(path, request_.state, columns.state, set_.state.width); !finite)
      return finite;
    if (auto finite = check_finite(path, "timestamp", columns.timestamps, 1); !finite)
      return finite;
    return check_finite(path, request_.action, columns.action, set_.action.width);
  }

  static Result<void> check_finite(const fs::path& path, const std::string& field,
                                   const std::vector<float>& values, std::int64_t width) {
    const auto found =
        std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (found == values.end()) return {};
    const auto at = found - values.begin();
    return wrong(path.string(), "row " + std::to_string(at / width) + ": " + field + "[" +
                                    std::to_string(at % width) + "] is " + std::to_string(*found));
  }

  Result<void> set_fingerprint() {
    Sha256 hash;
    const auto add_text = [&hash](const std::string& text) {
      const auto line = std::to_string(text.size()) + ":" + text + "\n";
      hash.update(std::as_bytes(std::span(line)));
    };
    add_text(number_text(set_.info.fps));
    for (const auto& [name, numbers] :
         {std::pair(&request_.state, &set_.state), std::pair(&request_.action, &set_.action)}) {
      add_text(*name + " " + std::to_string(numbers->width));
      hash.update(std::as_bytes(std::span(numbers->values)));
    }
    hash.update(std::as_bytes(std::span(set_.timestamps)));
    hash.update(std::as_bytes(std::span(set_.tasks)));
    for (const auto& task : set_.meta.tasks) add_text(task);
    for (const auto& episode : set_.meta.episodes) {
      add_text(std::to_string(episode.length));
      for (const auto& video : episode.videos)
        add_text(std::to_string(video.file) + " " + number_text(video.from_timestamp));
    }
    for (const auto& video : set_.meta.videos) {
      std::error_code failure;
      const auto bytes = fs::file_size(request_.folder / video, failure);
      if (failure)
        return wrong((request_.folder / video).string(),
                     "can't be looked at: " + failure.message() + "; meta/ says it is a video");
      add_text(video + " " + std::to_string(bytes));
    }
    set_.fingerprint = std::move(hash).hex();
    return {};
  }

  const LeRobotRequest& request_;
  const ParquetPlugin* plugin_ = nullptr;
  LeRobotSet set_;  // its arrays: each part by the one thread that reads it
  std::vector<DataFileFrames> files_;
  std::once_flag has_room_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> read_count_ = 0;
  std::mutex mutex_;  // guards the one below
  std::optional<Error> error_;
};

}  // namespace

std::string LeRobotSet::text() const {
  return name + ": " + grouped(static_cast<std::int64_t>(meta.episodes.size())) + " episodes, " +
         grouped(info.frames) + " frames, LeRobot " + info.version;
}

std::size_t episode_of(const LeRobotSet& set, std::int64_t frame) {
  const auto after =
      std::ranges::upper_bound(set.meta.episodes, frame, {}, &LeRobotEpisode::first_frame);
  return static_cast<std::size_t>(after - set.meta.episodes.begin()) - 1;
}

Result<LeRobotSet> open_lerobot_set(const LeRobotRequest& request) {
  return SetReader(request).read();
}

}  // namespace tj::trainer
