// Frames of one video, by number, as a pure function: what a clip is cut from. No torch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr std::int64_t kRgbChannels = 3;  // a byte each

struct VideoShape {
  std::int64_t frames = 0;
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  std::size_t frame_bytes() const {
    return static_cast<std::size_t>(height * width * kRgbChannels);
  }
};

class Video {
 public:
  virtual ~Video() = default;
  virtual VideoShape shape() const = 0;
  /// The frames of these numbers, ascending, one after another: rows of pixels, red, green and blue
  /// of each. On any thread. Fails with Code::invalid, and the file, for what can't be decoded.
  virtual Result<void> read(std::span<const std::int64_t> frames,
                            std::span<std::byte> rgb) const = 0;
};

}  // namespace tj::trainer
