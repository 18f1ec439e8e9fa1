// A LeRobot data set (github.com/huggingface/lerobot, v2.0, v2.1 and v3) as training reads it: its
// states and actions in memory, its videos by name. No torch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/lerobot/lerobot_info.h"
#include "trainer/data/lerobot/lerobot_meta.h"

namespace tj::trainer {

struct LeRobotRequest {
  std::filesystem::path folder;
  std::string flag = "--data";              // by which messages call it
  std::string state = "observation.state";  // features, by name
  std::string action = "action";
  std::filesystem::path parquet_plugin = {};            // libtrainer_parquet.so
  int threads = 1;                                      // that read files
  std::function<int()> stop_signal = [] { return 0; };  // from any thread; not 0: stop now
};

/// A feature that is a row of numbers, of every frame.
struct FrameNumbers {
  std::int64_t width = 0;
  std::vector<float> values;  // frame by frame
  std::span<const float> of(std::int64_t frame) const {
    return std::span(values).subspan(static_cast<std::size_t>(frame * width),
                                     static_cast<std::size_t>(width));
  }
};

/// One frame, and the episode it belongs to.
struct LeRobotFrame {
  std::size_t episode = 0;
  std::int64_t number = 0;  // of the data set
};

struct LeRobotSet {
  std::filesystem::path folder;
  std::string name;  // the folder's
  LeRobotInfo info;
  LeRobotMeta meta;
  FrameNumbers state;
  FrameNumbers action;
  std::vector<float> timestamps;    // seconds since the begin of the episode
  std::vector<std::int32_t> tasks;  // of each frame, by LeRobotMeta::tasks
  /// SHA-256 over all of these, and over names and sizes of the videos: by which statistics know
  /// the data set that they are of.
  std::string fingerprint;

  /// "aloha_pour: 50 episodes, 20,000 frames, LeRobot v3.0"
  std::string text() const;
};

/// The episode of a frame of the data set.
std::size_t episode_of(const LeRobotSet& set, std::int64_t frame);

/// Fails with Code::invalid, and names file, column and row, for what is not as info.json says;
/// with Code::not_found where the plug-in is missing.
Result<LeRobotSet> open_lerobot_set(const LeRobotRequest& request);

}  // namespace tj::trainer
