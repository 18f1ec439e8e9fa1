// A picture of another size: the bytes of Pillow's filters, which are as wide as what becomes one
// pixel, along rows first. Pure.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "trainer/values/picture.h"

namespace tj::trainer {

enum class PictureFilter { bilinear, bicubic };

/// Rows of pixels, three bytes each, of both.
std::vector<std::byte> resized(std::span<const std::byte> rgb, PictureSize from, PictureSize to,
                               PictureFilter filter = PictureFilter::bilinear);

}  // namespace tj::trainer
