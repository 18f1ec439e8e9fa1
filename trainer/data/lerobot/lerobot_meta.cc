#include "trainer/data/lerobot/lerobot_meta.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"
#include "trainer/data/file_walk.h"
#include "trainer/data/lerobot/json_place.h"
#include "trainer/data/parquet/parquet_numbers.h"
#include "trainer/data/parquet/parquet_text.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kTasksMax = 10'000'000;
constexpr std::size_t kLineBytesMax = 16 << 20;
constexpr std::int64_t kFileNumberMax = 100'000'000;
constexpr double kSecondsMax = 1e9;

Error wrong(const fs::path& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.string()};
}

/// Every line of a file of JSON lines.
Result<void> for_each_line(const fs::path& path,
                           const std::function<void(const JsonPlace&)>& take) {
  std::ifstream file(path);
  if (!file) return read_error(path, errno);
  std::string line;
  std::int64_t number = 0;
  while (std::getline(file, line)) {
    ++number;
    const auto place = "line " + std::to_string(number) + ": ";
    if (line.size() > kLineBytesMax) return wrong(path, place + "is too long");
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return wrong(path, place + "is no JSON object");
    try {
      take(JsonPlace(json, ""));
    } catch (const std::exception& failure) {
      return wrong(path, place + failure.what());
    }
  }
  if (file.bad()) return read_error(path, EIO);
  return {};
}

/// Numbers the names of files, each once.
class FileNames {
 public:
  explicit FileNames(std::vector<std::string>& names) : names_(names) {}
  std::size_t number_of(const std::string& name) {
    const auto [found, is_new] = numbers_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return found->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::size_t> numbers_;
};

class MetaReader {
 public:
  MetaReader(const fs::path& folder, const LeRobotInfo& info, const ParquetPlugin& plugin)
      : folder_(folder), info_(info), plugin_(plugin) {
    for (const auto& [name, feature] : info.features)
      if (feature.dtype == "video") meta_.cameras.push_back(name);
  }

  Result<LeRobotMeta> read() {
    const bool is_v3 = info_.layout == LeRobotLayout::shared_files;
    auto done = is_v3 ? read_tasks_v3() : read_tasks_v2();
    if (!done) return done.error();
    if (done = is_v3 ? read_episodes_v3() : read_episodes_v2(); !done) return done.error();
    if (done = check_totals(); !done) return done.error();
    return std::move(meta_);
  }

 private:
  Result<void> check_totals() {
    const auto& last = meta_.episodes.back();
    const auto frames = last.first_frame + last.length;
    const auto count = static_cast<std::int64_t>(meta_.episodes.size());
    if (count == info_.episodes && frames == info_.frames) return {};
    return wrong(folder_ / "meta" / "info.json",
                 "says total_episodes " + std::to_string(info_.episodes) + " and total_frames " +
                     std::to_string(info_.frames) + ", and meta/episodes has " +
                     std::to_string(count) + " of " + std::to_string(frames) + " frames");
  }

  Result<void> read_tasks_v2() {
    return for_each_line(folder_ / "meta" / "tasks.jsonl", [this](const JsonPlace& line) {
      const auto index = line.at("task_index");
      set_task(index.integer(0, kTasksMax - 1), line.at("task").text(), index);
    });
  }
  void set_task(std::int64_t index, std::string text, const JsonPlace& place) {
    if (index > static_cast<std::int64_t>(meta_.tasks.size()))
      throw place.wrong("must be the next one");
    if (index == static_cast<std::int64_t>(meta_.tasks.size())) meta_.tasks.emplace_back();
    meta_.tasks[static_cast<std::size_t>(index)] = std::move(text);
  }

  /// The tasks are the index of a table of pandas', which names it so where it has no name.
  Result<void> read_tasks_v3() {
    const auto file = folder_ / "meta" / "tasks.parquet";
    const auto numbers = NumberFile::open(plugin_, file);
    if (!numbers) return numbers.error();
    if (numbers->rows() > kTasksMax) return wrong(file, "has too many tasks");
    const std::string field = numbers->has("task") ? "task" : "__index_level_0__";
    if (!numbers->has(field))
      return wrong(file, "has no column \"task\", and none \"__index_level_0__\"");
    const auto indices = numbers->integers("task_index");
    if (!indices) return indices.error();
    const auto count = static_cast<std::int64_t>(indices->size());
    meta_.tasks.resize(indices->size());
    for (const auto index : *indices)
      if (index < 0 || index >= count)
        return wrong(file, "has task_index " + std::to_string(index) + " among " +
                               std::to_string(count) + " tasks");
    return read_task_texts(file, field, *indices);
  }
  Result<void> read_task_texts(const fs::path& path, const std::string& field,
                               const std::vector<std::int64_t>& indices) {
    const auto rows = static_cast<std::int64_t>(indices.size());
    const InputFile file{
        .path = path, .name = path.filename().string(), .bytes = rows, .rows = rows};
    const Slice all{.begin = 0, .end = rows};
    return for_each_row(
        plugin_, {.file = file, .slice = all, .field = field, .is_stopping = [] { return false; }},
        [&](const Document& task) {
          const auto row = static_cast<std::size_t>(task.offset);
          meta_.tasks[static_cast<std::size_t>(indices[row])] =
              with_invalid_utf8_replaced(task.text);
          return true;
        });
  }

  Result<void> read_episodes_v2() {
    const auto file = folder_ / "meta" / "episodes.jsonl";
    auto done = for_each_line(file, [this](const JsonPlace& line) { add_episode_v2(line); });
    if (done && meta_.episodes.empty()) return wrong(file, "has no episode");
    return done;
  }
  void add_episode_v2(const JsonPlace& line) {
    const auto number = static_cast<std::int64_t>(meta_.episodes.size());
    if (line.at("episode_index").integer(0, kLeRobotEpisodesMax) != number)
      throw line.at("episode_index").wrong("must be " + std::to_string(number));
    LeRobotEpisode episode{.first_frame = next_frame_,
                           .length = line.at("length").integer(1, info_.frames - next_frame_)};
    episode.data_file = data_.number_of(path_v2(info_.data_path, "", number));
    for (const auto& camera : meta_.cameras)
      episode.videos.push_back(
          {.file = videos_.number_of(path_v2(info_.video_path, camera, number))});
    next_frame_ += episode.length;
    meta_.episodes.push_back(std::move(episode));
  }
  std::string path_v2(const std::string& pattern, const std::string& camera, std::int64_t episode) {
    return filled(pattern, {{"episode_chunk", episode / info_.chunk_size},
                            {"episode_index", episode},
                            {"video_key", camera}});
  }
  static std::string filled(const std::string& pattern,
                            const std::map<std::string, PathValue>& values) {
    auto path = filled_path(pattern, values);
    if (!path) throw std::runtime_error("meta/info.json: " + path.error().message);
    return std::move(*path);
  }

  /// The columns of one file of meta/episodes.
  struct EpisodeColumns {
    std::vector<std::int64_t> index, from, to, data_chunk, data_file;
    struct Camera {
      std::vector<std::int64_t> chunk, file;
      std::vector<double> from;
    };
    std::vector<Camera> cameras;
  };

  Result<void> read_episodes_v3() {
    const auto folder = folder_ / "meta" / "episodes";
    std::error_code failure;
    if (!fs::is_directory(folder, failure)) return wrong(folder, "is no folder");
    const auto files = files_below(folder);
    if (!files) return files.error();
    for (const auto& file : *files) {
      if (file.extension() != ".parquet") continue;
      const auto columns = read_columns(file);
      if (!columns) return columns.error();
      for (std::size_t row = 0; row < columns->index.size(); ++row)
        if (auto added = add_episode_v3(file, *columns, row); !added) return added;
    }
    if (meta_.episodes.empty()) return wrong(folder, "has no episode");
    return {};
  }

  Result<EpisodeColumns> read_columns(const fs::path& path) {
    const auto file = NumberFile::open(plugin_, path);
    if (!file) return file.error();
    if (file->rows() > kLeRobotEpisodesMax) return wrong(path, "has too many episodes");
    EpisodeColumns columns;
    const auto integers = [&](const std::string& field,
                              std::vector<std::int64_t>& into) -> Result<void> {
      auto column = file->integers(field);
      if (!column) return column.error();
      into = std::move(*column);
      return {};
    };
    const std::pair<const char*, std::vector<std::int64_t>&> plain[] = {
        {"episode_index", columns.index},
        {"dataset_from_index", columns.from},
        {"dataset_to_index", columns.to},
        {"data/chunk_index", columns.data_chunk},
        {"data/file_index", columns.data_file}};
    for (const auto& [field, into] : plain)
      if (const auto done = integers(field, into); !done) return done.error();
    for (const auto& name : meta_.cameras) {
      auto& camera = columns.cameras.emplace_back();
      const auto of = "videos/" + name + "/";
      if (const auto done = integers(of + "chunk_index", camera.chunk); !done) return done.error();
      if (const auto done = integers(of + "file_index", camera.file); !done) return done.error();
      auto from = file->doubles(of + "from_timestamp");
      if (!from) return from.error();
      camera.from = std::move(*from);
    }
    return columns;
  }

  Result<void> add_episode_v3(const fs::path& file, const EpisodeColumns& columns,
                              std::size_t row) try {
    const auto number = static_cast<std::int64_t>(meta_.episodes.size());
    const auto must_be = [&](const char* field, std::int64_t is, std::int64_t should) {
      if (is == should) return;
      throw std::runtime_error("row " + std::to_string(row) + ": " + field + " must be " +
                               std::to_string(should) + ", and is " + std::to_string(is));
    };
    must_be("episode_index", columns.index[row], number);
    must_be("dataset_from_index", columns.from[row], next_frame_);
    const auto length = columns.to[row] - next_frame_;
    if (length < 1 || columns.to[row] > info_.frames)
      throw std::runtime_error("row " + std::to_string(row) + ": dataset_to_index must be from " +
                               std::to_string(next_frame_ + 1) + " to " +
                               std::to_string(info_.frames) + ", and is " +
                               std::to_string(columns.to[row]));
    LeRobotEpisode episode{.first_frame = next_frame_, .length = length};
    episode.data_file = data_.number_of(
        path_v3(info_.data_path, "", columns.data_chunk[row], columns.data_file[row]));
    for (std::size_t i = 0; i < columns.cameras.size(); ++i) {
      const auto& camera = columns.cameras[i];
      if (!(camera.from[row] >= 0 && camera.from[row] <= kSecondsMax))
        throw std::runtime_error("row " + std::to_string(row) + ": from_timestamp is " +
                                 std::to_string(camera.from[row]));
      const auto path =
          path_v3(info_.video_path, meta_.cameras[i], camera.chunk[row], camera.file[row]);
      episode.videos.push_back(
          {.file = videos_.number_of(path), .from_timestamp = camera.from[row]});
    }
    next_frame_ += length;
    meta_.episodes.push_back(std::move(episode));
    return {};
  } catch (const std::exception& failure) {
    return wrong(file, failure.what());
  }
  static std::string path_v3(const std::string& pattern, const std::string& camera,
                             std::int64_t chunk, std::int64_t file) {
    if (chunk < 0 || chunk > kFileNumberMax || file < 0 || file > kFileNumberMax)
      throw std::runtime_error("has chunk " + std::to_string(chunk) + " and file " +
                               std::to_string(file));
    return filled(pattern, {{"chunk_index", chunk}, {"file_index", file}, {"video_key", camera}});
  }

  const fs::path& folder_;
  const LeRobotInfo& info_;
  const ParquetPlugin& plugin_;
  LeRobotMeta meta_;
  FileNames data_{meta_.data};
  FileNames videos_{meta_.videos};
  std::int64_t next_frame_ = 0;
};

}  // namespace

Result<LeRobotMeta> read_lerobot_meta(const fs::path& folder, const LeRobotInfo& info,
                                      const ParquetPlugin& plugin) {
  return MetaReader(folder, info, plugin).read();
}

}  // namespace tj::trainer
