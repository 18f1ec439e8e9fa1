#include "cli/ui/run_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/api/read.h"

namespace tj::ui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kLookAgainSeconds = 5;
constexpr std::size_t kRecordFrameBytes = 16;  // length, its checksum, the payload's checksum
constexpr std::size_t kLineBytesMax = 64 * 1024;
constexpr std::size_t kCheckpointsMax = 100;
constexpr std::string_view kMetricsFile = "metrics.jsonl";
constexpr std::string_view kEventFile = "events.out.tfevents.";
constexpr std::string_view kRateSuffix = "_per_second";

static_assert(std::endian::native == std::endian::little, "event files are little endian");

template <typename Number>
Number number_from(std::string_view bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

/// Fields of a protobuf message, one after another.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// False at the end, and at what is no protobuf (then `is_whole` is false).
  bool next() {
    if (rest_.empty()) return false;
    const auto key = varint();
    if (!key) return fail();
    number = static_cast<int>(*key >> 3U);
    switch (*key & 7U) {
      case 0: return take_varint();
      case 1: return take_bytes(8);
      case 5: return take_bytes(4);
      case 2: {
        const auto length = varint();
        return length ? take_bytes(*length) : fail();
      }
      default: return fail();
    }
  }

  int number = 0;
  std::uint64_t integer = 0;  // of a varint
  std::string_view bytes;     // of all others
  bool is_whole = true;

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) return value;
    }
    return {};
  }
  bool take_varint() {
    const auto value = varint();
    if (!value) return fail();
    integer = *value;
    bytes = {};
    return true;
  }
  bool take_bytes(std::uint64_t count) {
    if (count > rest_.size()) return fail();
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  bool fail() {
    is_whole = false;
    return false;
  }

  std::string_view rest_;
};

/// Summary.Value: tag (1), simple_value (2); what PyTorch's add_scalar and our trainer write.
void read_value(std::string_view message, EventScalar scalar, std::vector<EventScalar>& scalars) {
  bool has_value = false;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number == 1) scalar.tag = std::string(fields.bytes);
    if (fields.number == 2 && fields.bytes.size() == 4) {
      scalar.value = number_from<float>(fields.bytes);
      has_value = true;
    }
  }
  if (has_value && fields.is_whole) scalars.push_back(std::move(scalar));
}

/// Event: wall_time (1), step (2), summary (5).
void read_event(std::string_view message, std::vector<EventScalar>& scalars) {
  EventScalar scalar;
  std::string_view summary;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number == 1 && fields.bytes.size() == 8)
      scalar.time = number_from<double>(fields.bytes);
    if (fields.number == 2) scalar.step = static_cast<long long>(fields.integer);
    if (fields.number == 5) summary = fields.bytes;
  }
  if (!fields.is_whole) return;
  Fields values(summary);
  while (values.next()) {
    if (values.number == 1) read_value(values.bytes, scalar, scalars);
  }
}

bool is_loss(const std::string& tag) {
  return tag == "train/loss" || tag == "loss" || tag == "Loss/train" || tag == "train_loss";
}

}  // namespace

std::optional<std::vector<EventScalar>> take_event_scalars(std::string& bytes) {
  std::vector<EventScalar> scalars;
  std::size_t at = 0;
  while (bytes.size() - at >= kRecordFrameBytes) {
    const auto length = number_from<std::uint64_t>(std::string_view(bytes).substr(at));
    if (length > kEventBytesMax) return {};
    if (bytes.size() - at < kRecordFrameBytes + length) break;
    read_event(std::string_view(bytes).substr(at + 12, length), scalars);
    at += kRecordFrameBytes + length;
  }
  bytes.erase(0, at);
  return scalars;
}

void MetricsLines::read(std::string_view line, double since_seconds, RunSeries& series) {
  const json entry = read::parse(line);
  if (!entry.is_object()) return;
  if (const auto now = read::maybe_real_at(entry, "unix_seconds")) time_ = now;
  const auto step = read::maybe_number_at<long long>(entry, "step");
  if (!step || !time_) return;
  *time_ += read::maybe_real_at(entry, "seconds").value_or(0);
  if (*time_ < since_seconds) return;
  progress_ = {.step = *step, .steps = read::number_at<long long>(entry, "steps")};
  if (const auto loss = read::maybe_real_at(entry, "loss"))
    series.loss.add({.time = *time_, .step = *step, .value = *loss});
  for (const auto& [name, value] : entry.items()) {
    if (name.ends_with(kRateSuffix) && value.is_number())
      series.rate.add({.time = *time_, .step = *step, .value = value.get<double>()});
  }
}

std::optional<RunFiles::File> RunFiles::file_at(const fs::path& path) {
  const std::string name = path.filename();
  const bool has_events = name.starts_with(kEventFile);
  if (!has_events && name != kMetricsFile) return {};
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  return File{.path = path,
              .identity = {facts.st_dev, facts.st_ino},
              .written_ns = facts.st_mtim.tv_sec * 1'000'000'000L + facts.st_mtim.tv_nsec,
              .has_events = has_events,
              .rest = {},
              .lines = {}};
}

void RunFiles::look_for_files() {
  std::size_t entries = 0;
  std::vector<File> found;
  for (const fs::path& folder : folders_) {
    std::error_code failure;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                           failure);
    for (; !failure && entry != fs::recursive_directory_iterator() && entries < kEntriesMax;
         entry.increment(failure), ++entries) {
      if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
      if (auto file = file_at(entry->path())) found.push_back(*std::move(file));
    }
  }
  know(std::move(found));
}

void RunFiles::know(std::vector<File> found) {
  // Who was written last is of the newest attempt.
  std::ranges::sort(found, {}, &File::written_ns);
  for (File& file : found) {
    const auto known = std::ranges::find(files_, file.identity, &File::identity);
    if (known != files_.end())
      known->path = std::move(file.path);
    else if (files_.size() < kFilesMax)
      files_.push_back(std::move(file));
  }
}

void RunFiles::read_news(double now_seconds) {
  if (now_seconds - looked_at_seconds_ >= kLookAgainSeconds) {
    looked_at_seconds_ = now_seconds;
    look_for_files();
  }
  for (const bool reads_events : {true, false}) {  // what they say of the loss is more exact
    for (File& file : files_) {
      if (file.has_events != reads_events || file.is_damaged) continue;
      file.rest += take_news(file);
      reads_events ? read_events(file) : read_metrics(file);
    }
  }
}

std::optional<FileProgress> RunFiles::progress() const {
  std::optional<FileProgress> newest;
  for (const File& file : files_) {
    if (file.lines.progress()) newest = file.lines.progress();
  }
  return newest;
}

std::string RunFiles::take_news(File& file) {
  const auto there = file_at(file.path);
  if (!there || there->identity != file.identity) return "";  // set aside: it is looked for again
  std::error_code failure;
  const auto size = fs::file_size(file.path, failure);
  if (failure || size <= file.offset) return "";
  std::ifstream stream(file.path, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(file.offset));
  std::string news(std::min<std::uintmax_t>(size - file.offset, kBytesPerTurn), '\0');
  stream.read(news.data(), static_cast<std::streamsize>(news.size()));
  news.resize(static_cast<std::size_t>(stream.gcount()));
  file.offset += news.size();
  return news;
}

void RunFiles::read_metrics(File& file) {
  RunSeries unused;  // event files say the same, with the time of each step
  RunSeries& series = has_event_loss_ ? unused : *series_;
  std::size_t begin = 0;
  for (auto end = file.rest.find('\n'); end != std::string::npos;
       begin = end + 1, end = file.rest.find('\n', begin)) {
    const auto line = std::string_view(file.rest).substr(begin, end - begin);
    if (line.size() > kLineBytesMax) continue;
    file.lines.read(line, since_seconds_, series);
    if (line.find("\"checkpoint\"") == std::string_view::npos) continue;
    const json entry = read::parse(line);
    const auto step = read::maybe_number_at<long long>(entry, "saved_step");
    if (step) checkpoints_[*step] = read::string_at(entry, "path");
    if (checkpoints_.size() > kCheckpointsMax) checkpoints_.erase(checkpoints_.begin());
  }
  file.rest.erase(0, begin);
  if (file.rest.size() > kLineBytesMax)
    file.rest.clear();  // the rest of it is no JSON: passed over
}

void RunFiles::read_events(File& file) {
  const auto scalars = take_event_scalars(file.rest);
  if (!scalars) {
    file.is_damaged = true;
    file.rest.clear();
    return;
  }
  for (const EventScalar& scalar : *scalars) {
    if (scalar.time < since_seconds_) continue;
    const SeriesPoint point{.time = scalar.time, .step = scalar.step, .value = scalar.value};
    if (is_loss(scalar.tag)) {
      has_event_loss_ = true;
      series_->loss.add(point);
    } else if (scalar.tag == "goodput/compute") {
      series_->goodput.add(point);
    } else if (scalar.tag.starts_with("speed/") && scalar.tag.ends_with(kRateSuffix)) {
      series_->rate.add(point);
    }
  }
}

}  // namespace tj::ui
