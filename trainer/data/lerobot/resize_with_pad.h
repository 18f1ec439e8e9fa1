// A picture in the middle of another one, as large as it fits, on black: openpi's rule
// (openpi_client/image_tools.py, resize_with_pad), by the bilinear filter. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/picture/resized.h"

namespace tj::trainer {

/// How large, and where, a picture of `from` lies in one of `to`.
struct PaddedPlace {
  PictureSize size;
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool operator==(const PaddedPlace&) const = default;
};
PaddedPlace padded_place(PictureSize from, PictureSize to);

/// Rows of pixels, three bytes each, of both; the rest is black. A picture that has the size is
/// left as it is.
std::vector<std::byte> resized_with_pad(std::span<const std::byte> rgb, PictureSize from,
                                        PictureSize to);
/// Rows of pixels to a plane of each of their three bytes, one after another, at `place`.
void write_planes(std::span<const std::byte> rgb, std::byte* place);

}  // namespace tj::trainer
