// Frames of one video, by number, as a pure function: what a clip is cut from. No torch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "contract/result.h"
#include "trainer/data/video/frame_rate.h"

namespace tj::trainer {

inline constexpr std::int64_t kRgbChannels = 3;  // a byte each

struct VideoShape {
  std::int64_t frames = 0;
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  FrameRate rate = {};  // of pictures none is known
  std::size_t frame_bytes() const {
    return static_cast<std::size_t>(height * width * kRgbChannels);
  }
};

/// A rectangle of each frame, in pixels.
struct VideoPart {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::size_t bytes() const { return static_cast<std::size_t>(height * width * kRgbChannels); }
  bool operator==(const VideoPart&) const = default;
};

class Video {
 public:
  virtual ~Video() = default;
  virtual VideoShape shape() const = 0;
  /// The frames of these numbers, ascending, one after another: rows of pixels, red, green and blue
  /// of each. On any thread. Fails with Code::invalid, and the file, for what can't be decoded.
  virtual Result<void> read(std::span<const std::int64_t> frames,
                            std::span<std::byte> rgb) const = 0;
  /// The same of a part of each frame, which lies in it: the same bytes as those of the whole.
  virtual Result<void> read_part(std::span<const std::int64_t> frames, const VideoPart& part,
                                 std::span<std::byte> rgb) const;
};

}  // namespace tj::trainer
