// meta/info.json of a LeRobot data set: what its files hold and how they are called. Pure but for
// the reading of the file; what it says is believed as far as it can be and no further.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

struct LeRobotFeature {
  std::string dtype;                // "float32", "video", "image", ...
  std::vector<std::int64_t> shape;  // of one frame
  /// Numbers of one frame.
  std::int64_t width() const;
  bool is_camera() const { return dtype == "video" || dtype == "image"; }
  bool operator==(const LeRobotFeature&) const = default;
};

/// v2.0 and v2.1 have a file for each episode, v3 has files of many.
enum class LeRobotLayout { file_per_episode, shared_files };

struct LeRobotInfo {
  std::string version;  // "v2.1"
  LeRobotLayout layout = LeRobotLayout::shared_files;
  double fps = 0;
  std::int64_t episodes = 0;
  std::int64_t frames = 0;
  std::int64_t chunk_size = 1000;  // episodes of a folder, in v2
  std::string data_path;           // as Python's str.format() takes it
  std::string video_path;          // empty: there are no videos
  std::map<std::string, LeRobotFeature> features;

  /// Features that are videos, or images; by name.
  std::vector<std::string> cameras() const;
  /// "observation.state (6), action (6)": features that are rows of numbers.
  std::string vectors_text() const;
};

inline constexpr std::int64_t kLeRobotEpisodesMax = 50'000'000;
inline constexpr std::int64_t kLeRobotFramesMax = std::int64_t{1} << 40;
inline constexpr std::int64_t kLeRobotWidthMax = 65'536;  // numbers in a state or an action

/// Fails with Code::invalid and names the field; the subject is the caller's to add.
Result<LeRobotInfo> lerobot_info_from(std::string_view json);
/// Of the data set in `folder`. Where it is none, says what it seems to be and how it becomes one;
/// `flag` is what the user named it by.
Result<LeRobotInfo> read_lerobot_info(const std::filesystem::path& folder, const std::string& flag);

/// A value of a field in a pattern of paths.
using PathValue = std::variant<std::int64_t, std::string>;
/// "data/chunk-{episode_chunk:03d}/..." filled in, for the few forms that LeRobot writes. Fails
/// with Code::invalid for another field or form, and for a path that leads out of the data set.
Result<std::string> filled_path(std::string_view pattern,
                                const std::map<std::string, PathValue>& values);

}  // namespace tj::trainer
