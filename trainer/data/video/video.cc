#include "trainer/data/video/video.h"

#include <cstring>
#include <vector>

namespace tj::trainer {

Result<void> Video::read_part(std::span<const std::int64_t> frames, const VideoPart& part,
                              std::span<std::byte> rgb) const {
  TJ_CHECK(rgb.size() == frames.size() * part.bytes(), "room for all parts");
  const auto whole = shape();
  std::vector<std::byte> frame(whole.frame_bytes());
  const auto row_bytes = static_cast<std::size_t>(part.width * kRgbChannels);
  auto* place = rgb.data();
  for (const auto number : frames) {
    if (auto done = read({&number, 1}, frame); !done) return done;
    for (std::int64_t row = 0; row < part.height; ++row, place += row_bytes)
      std::memcpy(place, frame.data() + ((part.top + row) * whole.width + part.left) * kRgbChannels,
                  row_bytes);
  }
  return {};
}

}  // namespace tj::trainer
