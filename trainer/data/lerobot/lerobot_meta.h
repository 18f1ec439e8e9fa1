// The other files in meta/ of a LeRobot data set: which frames an episode has, in which files they
// lie, and what the tasks are called.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/lerobot/lerobot_info.h"

namespace tj::trainer {

struct ParquetPlugin;

/// Where the frames of one episode lie in a video.
struct LeRobotVideo {
  std::size_t file = 0;       // of LeRobotMeta::videos
  double from_timestamp = 0;  // seconds into it at which the episode begins
};

struct LeRobotEpisode {
  std::int64_t first_frame = 0;      // of the data set
  std::int64_t length = 0;           // frames
  std::size_t data_file = 0;         // of LeRobotMeta::data
  std::vector<LeRobotVideo> videos;  // by the order of LeRobotMeta::cameras
};

struct LeRobotMeta {
  std::vector<std::string> cameras;  // features that are videos, by name
  std::vector<LeRobotEpisode> episodes;
  std::vector<std::string> data;    // Parquet files below the data set, in the order of frames
  std::vector<std::string> videos;  // below the data set
  std::vector<std::string> tasks;   // by task_index
};

/// Fails with Code::invalid and names the file, the line or the row, and what is wrong there.
Result<LeRobotMeta> read_lerobot_meta(const std::filesystem::path& folder, const LeRobotInfo& info,
                                      const ParquetPlugin& plugin);

}  // namespace tj::trainer
