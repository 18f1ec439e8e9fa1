#include "trainer/workloads/qwen_vggt/pixel_patches.h"

#include <algorithm>

namespace tj::trainer {
namespace {
constexpr float kPixelMax = 255;
}  // namespace

void write_pixel_patches(std::span<const std::uint8_t> pixels, PictureSides sides,
                         const PatchRule& rule, std::span<std::uint8_t> patches) {
  const auto pixels_of_plane = sides.height * sides.width;
  const auto frame_count = static_cast<std::int64_t>(pixels.size()) / (kColours * pixels_of_plane);
  const auto grid = video_grid(sides, frame_count, rule);
  TJ_CHECK(static_cast<std::int64_t>(pixels.size()) == frame_count * kColours * pixels_of_plane,
           "whole frames");
  TJ_CHECK(static_cast<std::int64_t>(patches.size()) == grid.patches() * rule.values_of_patch(),
           "room for all patches");
  const auto places = patch_places(grid, rule.merge_side);
  auto out = patches.begin();
  const auto write_part = [&](std::int64_t frame, std::int64_t colour, const PatchPlace& place) {
    for (std::int64_t y = 0; y < rule.patch_side; ++y) {
      const auto row = (frame * kColours + colour) * sides.height + place.row * rule.patch_side + y;
      const auto first = row * sides.width + place.column * rule.patch_side;
      out = std::copy_n(pixels.begin() + first, rule.patch_side, out);
    }
  };
  for (std::int64_t t = 0; t < grid.frames; ++t)
    for (const auto& place : places)
      for (std::int64_t colour = 0; colour < kColours; ++colour)
        for (std::int64_t part = 0; part < rule.frames_of_patch; ++part)
          write_part(std::min(t * rule.frames_of_patch + part, frame_count - 1), colour, place);
}

void patch_values(std::span<const std::uint8_t> patches, const PatchRule& rule,
                  const ColourScale& scale, std::span<float> values) {
  TJ_CHECK(patches.size() == values.size(), "room for all values");
  const auto of_colour = static_cast<std::size_t>(rule.values_of_patch() / kColours);
  for (std::size_t at = 0; at < patches.size(); ++at) {
    const auto colour = at / of_colour % kColours;
    values[at] = (static_cast<float>(patches[at]) / kPixelMax - scale.mean[colour]) /
                 scale.deviation[colour];
  }
}

}  // namespace tj::trainer
