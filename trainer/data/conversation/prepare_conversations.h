// `trainer prepare conversations`: looks through files of conversations once, and at all that they
// show, and writes what a training would else find out step by step (conversation_index.h). What
// was found is noted at once, so that the same command goes on where it was killed.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/conversation/conversation_index.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

inline constexpr int kPrepareConversationsThreadsMax = 256;

struct PrepareConversationsOptions {
  std::vector<std::string> inputs;
  std::string data_root;  // where paths begin; empty: at the folder of their file
  std::string out;        // a folder; empty: that of each file
  std::string tokenizer;  // to count tokens by; empty: they are not counted
  bool decodes = false;   // every picture to its end, not its head alone; and videos
  int threads = 0;        // 0: one for each usable core
};

struct PrepareConversationsProgress {
  std::int64_t done = 0;  // conversations, by this run or by one before it
  std::int64_t kept = 0;  // of these, by one before it
  std::int64_t all = 0;
  std::int64_t broken = 0;
  double seconds = 0;
};
/// 37 % | 120/340 conversations | 2 broken | ETA 235 s
std::string progress_line(const PrepareConversationsProgress& progress);

struct PrepareConversationsHooks {
  std::filesystem::path picture_plugin;  // libtrainer_picture.so
  std::filesystem::path video_plugin;    // libtrainer_video.so; loaded when the first video comes
  std::function<void(const PrepareConversationsProgress&)> progress;  // from the calling thread
  std::function<int()> stop_signal = [] { return 0; };  // from any thread; not 0: stop now
  std::chrono::milliseconds progress_interval{5000};
};

struct PrepareConversationsEnd {
  std::optional<Failure> failure;
  std::vector<std::filesystem::path> indices;
  std::string table;  // what is there, for people
  PrepareConversationsProgress progress;
};

/// Needs threads >= 1.
PrepareConversationsEnd prepare_conversations(const PrepareConversationsOptions& options,
                                              const PrepareConversationsHooks& hooks);

}  // namespace tj::trainer
