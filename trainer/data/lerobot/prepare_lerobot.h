// `trainer prepare lerobot`: looks through a LeRobot data set once: whether all its files are what
// its meta/ says, an index of its videos, and statistics of its states and actions. What was found
// is noted at once, so that the same command goes on where it was killed.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "trainer/data/lerobot/lerobot_set.h"
#include "trainer/data/lerobot/statistics.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

inline constexpr int kPrepareLeRobotThreadsMax = 256;
inline constexpr std::int64_t kHorizonMax = 10'000;

struct PrepareLeRobotOptions {
  std::string input;
  std::string out;  // a folder; empty: meta/ of the data set, and its videos' own
  std::string state = "observation.state";
  std::string action = "action";
  std::string delta_actions;  // "6,-1": empty: none
  std::int64_t horizon = 50;  // of chunks of actions
  int threads = 0;            // 0: one for each usable core
};

struct PrepareLeRobotProgress {
  std::string stage;  // "videos", "statistics"
  std::int64_t done = 0;
  std::int64_t all = 0;
  double seconds = 0;
};
/// statistics 37 % | 120/340 parts | ETA 3 s
std::string progress_line(const PrepareLeRobotProgress& progress);

struct PrepareLeRobotHooks {
  std::filesystem::path parquet_plugin;                 // libtrainer_parquet.so
  std::filesystem::path video_plugin;                   // libtrainer_video.so
  std::function<void(const std::string&)> progress;     // from the calling thread
  std::function<int()> stop_signal = [] { return 0; };  // from any thread; not 0: stop now
  std::chrono::milliseconds progress_interval{5000};
};

struct PrepareLeRobotEnd {
  std::optional<Failure> failure;
  std::filesystem::path file;  // the statistics
  std::string table;           // what is there, for people
};

/// Openpi's short form of a mask (transforms.make_bool_mask): "6,-1" is six true ones and then a
/// false one. Fails with Code::invalid.
Result<std::vector<bool>> delta_mask_from(const std::string& text);

/// Frames of parts in which a data set is worked on; an episode is in one.
struct FramePart {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const FramePart&) const = default;
};
std::vector<FramePart> frame_parts(const LeRobotSet& set);

/// Values of one dimension that statistics are over, of one part. `rule`: as of `action`.
std::vector<float> state_values(const LeRobotSet& set, const FramePart& part,
                                std::int64_t dimension);
std::vector<float> action_values(const LeRobotSet& set, const FramePart& part,
                                 std::int64_t dimension, const ActionRule& rule);

/// Needs threads >= 1.
PrepareLeRobotEnd prepare_lerobot(const PrepareLeRobotOptions& options,
                                  const PrepareLeRobotHooks& hooks);

}  // namespace tj::trainer
