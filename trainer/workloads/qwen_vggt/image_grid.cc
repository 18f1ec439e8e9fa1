#include "trainer/workloads/qwen_vggt/image_grid.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trainer/workloads/qwen_vggt/pixel_patches.h"

namespace tj::trainer {
namespace {

constexpr double kAspectMax = 200;
constexpr std::int64_t kSideMax = 1'000'000;  // pixels

std::string text_of(PictureSides sides) {
  return std::to_string(sides.width) + " x " + std::to_string(sides.height);
}

/// Python's round(): halves go to the even number.
std::int64_t rounded(std::int64_t side, std::int64_t factor) {
  const auto doubled_rest = 2 * (side % factor), whole = side / factor;
  const bool is_up = doubled_rest > factor || (doubled_rest == factor && whole % 2 == 1);
  return (whole + (is_up ? 1 : 0)) * factor;
}

}  // namespace

Result<PictureSides> resized_sides(PictureSides sides, const PatchRule& rule) {
  const auto [least, most] = std::minmax(sides.height, sides.width);
  const auto wrong = [&](const std::string& message) {
    return Error{.code = Code::invalid, .message = message, .subject = text_of(sides) + " pixels"};
  };
  if (least < 1 || most > kSideMax)
    return wrong("a side of a picture must be from 1 to " + std::to_string(kSideMax));
  const double height = static_cast<double>(sides.height), width = static_cast<double>(sides.width);
  if (std::max(height, width) / std::min(height, width) > kAspectMax)
    return wrong("one side is more than 200 times the other: Qwen2.5-VL sees no such picture");
  const auto factor = rule.side_of_token();
  const double of_token = static_cast<double>(factor);
  PictureSides fit{.height = rounded(sides.height, factor), .width = rounded(sides.width, factor)};
  if (fit.height * fit.width > rule.pixels_max) {
    const double shrink = std::sqrt((height * width) / static_cast<double>(rule.pixels_max));
    const auto down = [&](double side) {
      return std::max(factor,
                      static_cast<std::int64_t>(std::floor(side / shrink / of_token)) * factor);
    };
    fit = {.height = down(height), .width = down(width)};
  } else if (fit.height * fit.width < rule.pixels_min) {
    const double grow = std::sqrt(static_cast<double>(rule.pixels_min) / (height * width));
    const auto up = [&](double side) {
      return static_cast<std::int64_t>(std::ceil(side * grow / of_token)) * factor;
    };
    fit = {.height = up(height), .width = up(width)};
  }
  return fit;
}

VisionGrid image_grid(PictureSides resized, const PatchRule& rule) {
  return video_grid(resized, 1, rule);
}

VisionGrid video_grid(PictureSides resized, std::int64_t frame_count, const PatchRule& rule) {
  TJ_CHECK(frame_count >= 1, "a frame at least");
  TJ_CHECK(resized.height % rule.side_of_token() == 0 && resized.width % rule.side_of_token() == 0,
           "whole tokens");
  return {.frames = (frame_count + rule.frames_of_patch - 1) / rule.frames_of_patch,
          .rows = resized.height / rule.patch_side,
          .columns = resized.width / rule.patch_side};
}

std::int64_t token_count(const VisionGrid& grid, const PatchRule& rule) {
  return grid.patches() / rule.patches_of_token();
}

std::vector<PatchPlace> patch_places(const VisionGrid& grid, std::int64_t merge_side) {
  std::vector<PatchPlace> places;
  places.reserve(static_cast<std::size_t>(grid.patches_of_frame()));
  for (std::int64_t top = 0; top < grid.rows; top += merge_side)
    for (std::int64_t left = 0; left < grid.columns; left += merge_side)
      for (std::int64_t row = top; row < top + merge_side; ++row)
        for (std::int64_t column = left; column < left + merge_side; ++column)
          places.push_back({.row = row, .column = column});
  return places;
}

void write_patches(std::span<const std::uint8_t> pixels, PictureSides sides, const PatchRule& rule,
                   const ColourScale& scale, std::span<float> values) {
  std::vector<std::uint8_t> patches(values.size());
  write_pixel_patches(pixels, sides, rule, patches);
  patch_values(patches, rule, scale, values);
}

}  // namespace tj::trainer
