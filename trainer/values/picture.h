// A picture in memory, and its size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tj::trainer {

struct PictureSize {
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};

struct Picture {
  PictureSize size;
  std::vector<std::byte> rgb;  // rows of pixels; red, green and blue of each
  bool operator==(const Picture&) const = default;
};

}  // namespace tj::trainer
