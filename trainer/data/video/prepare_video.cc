#include "trainer/data/video/prepare_video.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "contract/utf8.h"
#include "trainer/data/video/video_files.h"
#include "trainer/process/crew.h"
#include "trainer/process/data_file.h"
#include "trainer/process/durable_file.h"
#include "trainer/process/unique_fd.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

/// Beside the index while it is made: a line for each video that was looked at.
constexpr const char* kNotesFile = ".videos.index.jsonl.part";

Failure save_failed(const Error& error) {
  return {.exit_code = exit_code::kInputOutput,
          .reason = "SaveFailed",
          .message = describe(error) + "; --out names another folder for the index"};
}
Failure wrong(const std::string& option, const std::string& what) {
  return bad_config({.code = Code::invalid, .message = what, .subject = option});
}

/// A video to look at.
struct Work {
  VideoFiles files;
  VideoIndexEntry entry;  // at first its name and state alone
  bool is_kept = false;   // known from before
};

class VideoPreparation {
 public:
  VideoPreparation(const PrepareVideoOptions& options, const PrepareVideoHooks& hooks)
      : options_(options),
        hooks_(hooks),
        folder_(options.out.empty() ? options.input : options.out),
        opener_(hooks.plugin) {}

  PrepareVideoEnd run() {
    auto failure = begin();
    if (!failure) failure = work();
    if (!failure) failure = commit();
    PrepareVideoEnd end{.failure = std::move(failure),
                        .index = folder_ / kVideoIndexFile,
                        .entries = {},
                        .unnamed = std::move(unnamed_),
                        .progress = progress()};
    for (auto& each : work_) end.entries.push_back(std::move(each.entry));
    return end;
  }

 private:
  std::optional<Failure> begin() {
    std::error_code failure;
    if (!fs::is_directory(options_.input, failure))
      return wrong("--input " + options_.input, "is no folder");
    auto found = find_videos({options_.input}, "--input");
    if (!found) return bad_data(found.error());
    std::erase_if(*found, [](const VideoFiles& video) { return video.are_pictures(); });
    if (found->empty())
      return wrong("--input " + options_.input, "holds pictures alone, which need no index");
    if (const auto ready = opener_.prepare_for(*found); !ready) return bad_data(ready.error());
    if (auto wrong_place = open_folder()) return wrong_place;
    for (auto& video : *found) add(std::move(video));
    take_known(folder_ / kVideoIndexFile);
    take_known(folder_ / kNotesFile);
    return std::nullopt;
  }

  std::optional<Failure> open_folder() {
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure)
      return save_failed({.code = Code::unavailable,
                          .message = "can't be created: " + failure.message(),
                          .subject = folder_.string()});
    const auto path = folder_ / kNotesFile;
    notes_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!notes_.open())
      return save_failed({.code = Code::unavailable,
                          .message = std::string("can't be written: ") + std::strerror(errno),
                          .subject = path.string()});
    if (::flock(notes_.value(), LOCK_EX | LOCK_NB) != 0)
      return wrong(folder_.string(), "another trainer prepare is at work there");
    return write_note("\n");  // ends a line that a kill has cut
  }

  void add(VideoFiles video) {
    const auto& file = video.files.front();
    Work work{.files = video, .entry = {}};
    work.entry.name = file.lexically_relative(video.folder).generic_string();
    if (valid_utf8_bytes(work.entry.name) != work.entry.name.size()) {
      unnamed_.push_back(file.string());
      return;
    }
    if (const auto state = state_of(file)) work.entry.state = *state;
    bytes_ += work.entry.state.bytes;
    work_.push_back(std::move(work));
  }

  /// What an earlier run has found out of files that are as they were.
  void take_known(const fs::path& file) {
    const auto known = read_video_index(file);
    if (!known) return;
    for (auto& work : work_) {
      const auto found = known->entries.find(work.entry.name);
      if (found == known->entries.end() || found->second.state != work.entry.state) continue;
      work.entry = found->second;
      work.is_kept = true;
    }
  }

  std::optional<Failure> work() {
    begun_ = steady_clock::now();
    for (const auto& each : work_)
      if (each.is_kept) count(each), bytes_kept_ += each.entry.state.bytes;
    const auto tell = [this] {
      if (hooks_.progress) hooks_.progress(progress());
    };
    if (auto failure = crew_.run(
            options_.threads, [this] { return look_at_all(); }, hooks_.progress_interval, tell))
      return failure;
    if (videos_done_ == work_.size()) return std::nullopt;
    return Failure{.exit_code = exit_code::kInterrupted,
                   .reason = "Interrupted",
                   .message = "asked to stop by signal " + std::to_string(hooks_.stop_signal()) +
                              "; " + std::to_string(videos_done_) + " of " +
                              std::to_string(work_.size()) +
                              " videos are done, the same command goes on from there"};
  }

  std::optional<Failure> look_at_all() {
    while (!crew_.is_stopping()) {
      const std::size_t next = next_++;
      if (next >= work_.size()) break;
      if (work_[next].is_kept) continue;
      if (auto failure = look_at(work_[next])) return failure;
    }
    return std::nullopt;
  }

  /// A file that changes meanwhile is none that the index can vouch for.
  std::optional<Failure> look_at(Work& work) {
    auto facts = opener_.scan(work.files);
    const auto state = state_of(work.files.files.front());
    if (!state || *state != work.entry.state) {
      work.entry.broken = "has changed while it was looked at";
      count(work);
      return std::nullopt;
    }
    if (facts) {
      work.entry.facts = std::move(*facts);
    } else {
      work.entry.broken = facts.error().message;
    }
    if (auto failure = write_note(index_line(work.entry) + "\n")) return failure;
    count(work);
    return std::nullopt;
  }

  /// One write for a line: one that is cut off by the end of the process is not read again.
  std::optional<Failure> write_note(std::string_view rest) {
    const std::scoped_lock lock(notes_mutex_);
    while (!rest.empty()) {
      const auto written = ::write(notes_.value(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        return save_failed({.code = Code::unavailable,
                            .message = std::string("can't be written: ") + std::strerror(errno),
                            .subject = (folder_ / kNotesFile).string()});
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return std::nullopt;
  }

  void count(const Work& work) {
    bytes_done_ += work.entry.state.bytes;
    ++videos_done_;
  }

  /// The index appears whole, and the notes go only then.
  std::optional<Failure> commit() {
    std::ranges::sort(
        work_, {}, [](const Work& each) -> const auto& { return each.entry.name; });
    std::string text;
    for (const auto& each : work_) text += index_line(each.entry) + "\n";
    const auto draft = folder_ / (std::string(".") + kVideoIndexFile + ".draft");
    if (const auto written = write_durably(draft, text); !written)
      return save_failed(written.error());
    std::error_code failure;
    fs::rename(draft, folder_ / kVideoIndexFile, failure);
    if (failure)
      return save_failed({.code = Code::unavailable,
                          .message = "can't be renamed: " + failure.message(),
                          .subject = draft.string()});
    if (const auto synced = sync_folder(folder_); !synced) return save_failed(synced.error());
    fs::remove(folder_ / kNotesFile, failure);
    return std::nullopt;
  }

  PrepareVideoProgress progress() const {
    const std::chrono::duration<double> taken = steady_clock::now() - begun_;
    return {.bytes_done = bytes_done_,
            .bytes_kept = bytes_kept_,
            .bytes = bytes_,
            .videos_done = videos_done_,
            .videos = work_.size(),
            .seconds = taken.count()};
  }

  const PrepareVideoOptions& options_;
  const PrepareVideoHooks& hooks_;
  Crew crew_{hooks_.stop_signal};
  const fs::path folder_;  // of the index
  VideoOpener opener_;
  std::vector<Work> work_;  // each by the one thread that has it
  std::vector<std::string> unnamed_;
  std::int64_t bytes_ = 0;
  std::int64_t bytes_kept_ = 0;
  UniqueFd notes_;  // locked; the kernel gives it back however this process ends
  std::mutex notes_mutex_;
  steady_clock::time_point begun_ = steady_clock::now();
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> videos_done_ = 0;
  std::atomic<std::int64_t> bytes_done_ = 0;
};

/// "480 x 320: 12, 96 x 64: 3", the most frequent first.
std::string counted(const std::map<std::string, std::int64_t>& counts) {
  constexpr std::size_t kShownMax = 8;
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShownMax); ++i)
    text += (i == 0 ? "" : ", ") + sorted[i].first + ": " + grouped(sorted[i].second);
  if (sorted.size() > kShownMax)
    text += ", and " + std::to_string(sorted.size() - kShownMax) + " more";
  return text;
}

std::string gigabytes(std::int64_t bytes) {
  char text[32];
  const auto gigabytes = static_cast<double>(bytes) / 1e9;
  std::snprintf(text, sizeof text, gigabytes < 0.1 ? "%.1f MB" : "%.1f GB",
                gigabytes < 0.1 ? gigabytes * 1e3 : gigabytes);
  return text;
}

}  // namespace

std::string progress_line(const PrepareVideoProgress& progress) {
  const auto all = static_cast<double>(std::max<std::int64_t>(1, progress.bytes));
  const auto done = static_cast<double>(progress.bytes_done);
  const auto fresh = static_cast<double>(progress.bytes_done - progress.bytes_kept);
  const double speed = progress.seconds > 0 ? fresh / progress.seconds : 0;
  char eta[32] = "?";
  if (speed > 0) std::snprintf(eta, sizeof eta, "%.0f s", (all - done) / speed);
  char line[200];
  std::snprintf(line, sizeof line, "%.0f %% | %zu/%zu videos | %s of %s | %.1f MB/s | ETA %s",
                100 * done / all, progress.videos_done, progress.videos,
                gigabytes(progress.bytes_done).c_str(), gigabytes(progress.bytes).c_str(),
                speed / 1e6, eta);
  return line;
}

PrepareVideoEnd prepare_video(const PrepareVideoOptions& options, const PrepareVideoHooks& hooks) {
  TJ_CHECK(options.threads >= 1 && options.threads <= kPrepareVideoThreadsMax, "so many threads");
  return VideoPreparation(options, hooks).run();
}

std::string video_table(const PrepareVideoEnd& end) {
  constexpr std::size_t kNamedMax = 20;
  std::int64_t frames = 0, usable = 0;
  double seconds = 0;
  std::map<std::string, std::int64_t> sizes, codecs;
  std::vector<const VideoIndexEntry*> broken;
  for (const auto& entry : end.entries) {
    if (!entry.broken.empty()) {
      broken.push_back(&entry);
      continue;
    }
    ++usable;
    frames += entry.facts.times.frames;
    seconds += entry.facts.seconds;
    ++sizes[std::to_string(entry.facts.width) + " x " + std::to_string(entry.facts.height)];
    ++codecs[entry.facts.codec];
  }
  char hours[32];
  std::snprintf(hours, sizeof hours, "%.2f", seconds / 3600);
  std::string text = "videos  " + grouped(usable) + ", " + gigabytes(end.progress.bytes) + "\n" +
                     "frames  " + grouped(frames) + "\n" + "hours   " + hours + "\n" + "sizes   " +
                     counted(sizes) + "\n" + "codecs  " + counted(codecs) + "\n" + "broken  " +
                     std::to_string(broken.size()) + " of " + std::to_string(end.entries.size()) +
                     "\n";
  for (std::size_t i = 0; i < std::min(broken.size(), kNamedMax); ++i)
    text += "  " + broken[i]->name + ": " + broken[i]->broken + "\n";
  if (broken.size() > kNamedMax)
    text += "  and " + std::to_string(broken.size() - kNamedMax) + " more, in the index\n";
  for (const auto& name : end.unnamed)
    text += "  not in the index, since its name is no UTF-8: " + with_invalid_utf8_replaced(name) +
            "\n";
  return text;
}

}  // namespace tj::trainer
