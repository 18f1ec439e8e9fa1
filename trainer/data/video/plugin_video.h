// libtrainer_video.so from the side of the programs: told what to do, and its videos.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "contract/result.h"
#include "trainer/data/video/video.h"
#include "trainer/data/video/video_index.h"

namespace tj::trainer {

struct VideoPlugin;

/// How all videos of a process are decoded.
struct VideoReading {
  std::int64_t frame_cache_bytes = 0;  // of decoded frames that are kept
  std::string decoder = "cpu";         // or auto, cuda, vaapi
  std::string decoder_flag = "";       // by which a user chose it
  int device_number = 0;               // of several devices that decode
};

/// What decodes then: "cpu", "cuda". Fails with Code::invalid, the flag and what libav says.
Result<std::string> configure_videos(const VideoPlugin& plugin, const VideoReading& reading);

/// Reads the whole file, without decoding it. Fails with Code::invalid and the file.
Result<VideoFacts> scan_video(const VideoPlugin& plugin, const std::filesystem::path& file);
Result<std::unique_ptr<Video>> open_video(const VideoPlugin& plugin,
                                          const std::filesystem::path& file);
/// Without looking at the file, which must be as `facts` say; else reading fails.
std::unique_ptr<Video> known_video(const VideoPlugin& plugin, const std::filesystem::path& file,
                                   const VideoFacts& facts);

}  // namespace tj::trainer
