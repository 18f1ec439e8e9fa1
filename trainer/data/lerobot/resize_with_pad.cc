#include "trainer/data/lerobot/resize_with_pad.h"

#include <algorithm>

namespace tj::trainer {
namespace {

constexpr std::int64_t kChannels = 3;
}  // namespace

PaddedPlace padded_place(PictureSize from, PictureSize to) {
  const double ratio = std::max(static_cast<double>(from.width) / static_cast<double>(to.width),
                                static_cast<double>(from.height) / static_cast<double>(to.height));
  const auto part = [ratio](std::int64_t extent) {
    return std::max<std::int64_t>(1,
                                  static_cast<std::int64_t>(static_cast<double>(extent) / ratio));
  };
  const PictureSize size{.height = part(from.height), .width = part(from.width)};
  return {.size = size, .top = (to.height - size.height) / 2, .left = (to.width - size.width) / 2};
}

std::vector<std::byte> resized_with_pad(std::span<const std::byte> rgb, PictureSize from,
                                        PictureSize to) {
  if (from == to) return {rgb.begin(), rgb.end()};
  const auto place = padded_place(from, to);
  const auto picture = resized(rgb, from, place.size);
  std::vector<std::byte> made(static_cast<std::size_t>(to.height * to.width * kChannels));
  const auto row_bytes = place.size.width * kChannels;
  for (std::int64_t row = 0; row < place.size.height; ++row)
    std::copy_n(picture.data() + row * row_bytes, row_bytes,
                made.data() + ((place.top + row) * to.width + place.left) * kChannels);
  return made;
}

void write_planes(std::span<const std::byte> rgb, std::byte* place) {
  constexpr auto kBytes = static_cast<std::size_t>(kChannels);
  for (std::size_t channel = 0; channel < kBytes; ++channel)
    for (std::size_t byte = channel; byte < rgb.size(); byte += kBytes) *place++ = rgb[byte];
}

}  // namespace tj::trainer
