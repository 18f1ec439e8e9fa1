// videos.index.jsonl: what a folder of videos holds, so that nobody reads all files for it. A line
// is a video, whole in itself. Others may have written it: what is not believable is refused by
// line. No libav.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/data/video/frame_times.h"

namespace tj::trainer {

inline constexpr const char* kVideoIndexFile = "videos.index.jsonl";
inline constexpr int kVideoExtentMax = 65'536;  // pixels

/// By which a file is known to be as it was.
struct FileState {
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970
  bool operator==(const FileState&) const = default;
};
/// Fails with Code::not_found, or what else the kernel says.
Result<FileState> state_of(const std::filesystem::path& file);

/// What a scan tells of a video.
struct VideoFacts {
  int height = 0;  // pixels
  int width = 0;
  double seconds = 0;    // 0: not known
  int rate_frames = 0;   // so many frames
  int rate_seconds = 0;  // in so many seconds; 0: not known
  std::string codec;
  FrameTimes times;
  bool operator==(const VideoFacts&) const = default;
};

struct VideoIndexEntry {
  std::string name;  // below the folder, with slashes
  FileState state;
  std::string broken;  // why it can't be used; empty: it can
  VideoFacts facts;    // of one that can
  bool operator==(const VideoIndexEntry&) const = default;
};

/// Without a newline. The name must be UTF-8.
std::string index_line(const VideoIndexEntry& entry);
/// Fails with Code::invalid, and says what is wrong.
Result<VideoIndexEntry> index_entry_from(std::string_view line);

struct VideoIndex {
  std::filesystem::path file;
  std::map<std::string, VideoIndexEntry> entries;  // by name; of two lines the later one
  std::vector<std::string> refused;                // "line 3: is no JSON object"
};
/// An unfinished last line is left out. Fails with Code::not_found where there is no such file.
Result<VideoIndex> read_video_index(const std::filesystem::path& file);

}  // namespace tj::trainer
