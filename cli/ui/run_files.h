// What a training run left in files, as series: the trainer's metrics.jsonl, and TensorBoard's
// event files of any program. Files grow while they are read; what was read once is not read again.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ui/series.h"

namespace tj::ui {

/// A scalar out of an event file.
struct EventScalar {
  double time = 0;  // seconds since 1970
  long long step = 0;
  std::string tag;
  double value = 0;
  bool operator==(const EventScalar&) const = default;
};

/// Takes whole records from the front of `bytes` (TFRecord: length, its checksum, payload, its
/// checksum) and leaves the rest. Absent: this is no event file, or it is damaged.
/// Sources: tensorflow/core/lib/io/record_writer.h, tensorboard/compat/proto/{event,summary}.proto
std::optional<std::vector<EventScalar>> take_event_scalars(std::string& bytes);
inline constexpr std::size_t kEventBytesMax = 16 << 20;  // of one record; pictures are large

/// How far the run's files say it is.
struct FileProgress {
  long long step = 0;
  long long steps = 0;  // 0: not known
  bool operator==(const FileProgress&) const = default;
};

/// Reads lines of metrics.jsonl. They hold seconds of each step; what time it was follows from the
/// begin of the attempt and the steps since.
class MetricsLines {
 public:
  /// A line that is no JSON, or of another form, says nothing, and so does one of an earlier time.
  void read(std::string_view line, double since_seconds, RunSeries& series);
  /// Of the last line of a step; absent before there is any.
  const std::optional<FileProgress>& progress() const { return progress_; }

 private:
  std::optional<double> time_;
  std::optional<FileProgress> progress_;
};

/// The files of one run.
class RunFiles {
 public:
  static constexpr std::size_t kFilesMax = 64;
  static constexpr std::size_t kBytesPerTurn = 8 << 20;  // of one file
  static constexpr std::size_t kEntriesMax = 4'000;      // looked at in the search for files
  static constexpr int kDepthMax = 6;

  /// Folders in which the run may have written; those that aren't there are passed over. What was
  /// before `since_seconds` is of an earlier run in the same place.
  RunFiles(std::vector<std::filesystem::path> folders, double since_seconds)
      : folders_(std::move(folders)), since_seconds_(since_seconds) {}
  /// Looks for new files now and then, and reads what has come.
  void read_news(double now_seconds);
  std::shared_ptr<const RunSeries> series() const { return series_; }
  /// Of the newest metrics.jsonl.
  std::optional<FileProgress> progress() const;
  /// The newest ones of the complete checkpoints that metrics.jsonl tells of, by step.
  const std::map<long long, std::string>& checkpoints() const { return checkpoints_; }

 private:
  /// Known by what it is: an attempt's folder is set aside under another name.
  struct File {
    std::filesystem::path path;
    std::pair<std::uint64_t, std::uint64_t> identity;  // device and inode
    std::int64_t written_ns = 0;                       // when it was found
    bool has_events = false;                           // else lines of metrics
    std::uintmax_t offset = 0;
    std::string rest;  // bytes of a record or a line that isn't whole
    MetricsLines lines;
    bool is_damaged = false;
  };
  static std::optional<File> file_at(const std::filesystem::path& path);
  void look_for_files();
  void know(std::vector<File> found);
  std::string take_news(File& file);
  void read_metrics(File& file);
  void read_events(File& file);

  std::vector<std::filesystem::path> folders_;
  double since_seconds_;
  std::vector<File> files_;  // earlier attempts come first
  std::shared_ptr<RunSeries> series_ = std::make_shared<RunSeries>();
  bool has_event_loss_ = false;
  std::map<long long, std::string> checkpoints_;
  double looked_at_seconds_ = 0;
};

}  // namespace tj::ui
