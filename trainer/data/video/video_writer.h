// A video that is made frame by frame: a file by FFmpeg's libraries (a plug-in), or a folder of PPM
// pictures, without. It appears under its name when it is whole.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "contract/result.h"
#include "trainer/data/video/video.h"

namespace tj::trainer {

class VideoWriter {
 public:
  virtual ~VideoWriter() = default;  // nothing is left of one that was not finished
  /// The next frame: rows of pixels, red, green and blue of each.
  virtual Result<void> write(std::span<const std::byte> rgb) = 0;
  /// Flushes it to the disk and gives it its name.
  virtual Result<void> finish() = 0;
};

/// Where a video is to be, and how it is to be.
struct VideoRequest {
  /// Its ending decides: .mkv is FFV1, which loses nothing, .mp4 is H.264, and without one it is a
  /// folder of PPM pictures.
  std::filesystem::path out;
  VideoShape shape;  // of so many frames; without a known rate it is kRateDefault
  std::filesystem::path plugin;
};
inline constexpr FrameRate kRateDefault{.numerator = 24};

/// Fails with Code::invalid for another ending or where the plug-in can't be loaded, Code::conflict
/// where `out` is there already, and else as the disk says.
Result<std::unique_ptr<VideoWriter>> create_video(const VideoRequest& request);

}  // namespace tj::trainer
