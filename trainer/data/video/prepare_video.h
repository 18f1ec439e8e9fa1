// `trainer prepare video`: looks through a folder of videos once and writes what a training would
// otherwise look for at each start (video_index.h). What was found is noted at once, so that the
// same command goes on where it was killed; a file that has not changed is not read again.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/video/video_index.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

inline constexpr int kPrepareVideoThreadsMax = 256;

struct PrepareVideoOptions {
  std::string input;
  std::string out;  // a folder; empty: `input`
  int threads = 0;  // 0: one for each usable core
};

struct PrepareVideoProgress {
  std::int64_t bytes_done = 0;  // of files, by this run or by one before it
  std::int64_t bytes_kept = 0;  // of these, by one before it
  std::int64_t bytes = 0;
  std::size_t videos_done = 0;
  std::size_t videos = 0;
  double seconds = 0;
};
/// 37 % | 120/340 videos | 12.0 of 32.0 GB | 85.0 MB/s | ETA 235 s
std::string progress_line(const PrepareVideoProgress& progress);

struct PrepareVideoHooks {
  std::filesystem::path plugin;                               // libtrainer_video.so
  std::function<void(const PrepareVideoProgress&)> progress;  // from the calling thread
  std::function<int()> stop_signal = [] { return 0; };        // from any thread; not 0: stop now
  std::chrono::milliseconds progress_interval{5000};
};

struct PrepareVideoEnd {
  std::optional<Failure> failure;
  std::filesystem::path index;
  std::vector<VideoIndexEntry> entries;  // by name
  std::vector<std::string> unnamed;      // files whose names are no UTF-8: not in the index
  PrepareVideoProgress progress;
};

/// Needs threads >= 1.
PrepareVideoEnd prepare_video(const PrepareVideoOptions& options, const PrepareVideoHooks& hooks);

/// The table of what is there: videos, frames, hours, sizes, codecs, what is broken.
std::string video_table(const PrepareVideoEnd& end);

}  // namespace tj::trainer
