// A picture in the middle of another one, as large as it fits, on black: openpi's rule
// (openpi_client/image_tools.py, resize_with_pad), and the bytes of Pillow's bilinear filter, which
// is a triangle as wide as what becomes one pixel, along rows first. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tj::trainer {

struct PictureSize {
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// How large, and where, a picture of `from` lies in one of `to`.
struct PaddedPlace {
  PictureSize size;
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool operator==(const PaddedPlace&) const = default;
};
PaddedPlace padded_place(PictureSize from, PictureSize to);

/// Rows of pixels, three bytes each, of both.
std::vector<std::byte> resized(std::span<const std::byte> rgb, PictureSize from, PictureSize to);
/// The same, with the rest black. A picture that has the size is left as it is.
std::vector<std::byte> resized_with_pad(std::span<const std::byte> rgb, PictureSize from,
                                        PictureSize to);
/// Rows of pixels to a plane of each of their three bytes, one after another, at `place`.
void write_planes(std::span<const std::byte> rgb, std::byte* place);

}  // namespace tj::trainer
