// From pixels to patches, as Qwen2.5-VL counts and orders them: sizes that a picture is brought to,
// its grid of patches, and the values of each patch. Pure: no torch, no files.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr std::int64_t kColours = 3;

struct PictureSides {
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  bool operator==(const PictureSides&) const = default;
};

/// How pictures become patches; in preprocessor_config.json.
struct PatchRule {
  std::int64_t patch_side = 14;      // pixels
  std::int64_t merge_side = 2;       // patches that become one token, along each side
  std::int64_t frames_of_patch = 2;  // of a video; a still picture is taken twice
  std::int64_t pixels_min = 56 * 56;
  std::int64_t pixels_max = 28 * 28 * 1280;
  bool operator==(const PatchRule&) const = default;

  std::int64_t side_of_token() const { return patch_side * merge_side; }
  std::int64_t patches_of_token() const { return merge_side * merge_side; }
  std::int64_t values_of_patch() const {
    return kColours * frames_of_patch * patch_side * patch_side;
  }
};

/// Patches of a picture or a video: frames (already joined), rows, columns ("grid_thw").
struct VisionGrid {
  std::int64_t frames = 1;
  std::int64_t rows = 0;  // both multiples of merge_side
  std::int64_t columns = 0;
  bool operator==(const VisionGrid&) const = default;

  std::int64_t patches_of_frame() const { return rows * columns; }
  std::int64_t patches() const { return frames * rows * columns; }
};

/// The size nearest to `sides` whose sides are multiples of side_of_token() and whose area is
/// within the rule's bounds, as far as the first allows it (transformers' smart_resize: halves are
/// rounded to even numbers of tokens). Fails with Code::invalid for sides below 1 or above a
/// million, and where one is more than 200 times the other.
Result<PictureSides> resized_sides(PictureSides sides, const PatchRule& rule);

/// Of a picture of such a size.
VisionGrid image_grid(PictureSides resized, const PatchRule& rule);
/// Of a video of `frame_count` frames, 1 at least; the last frame fills up what is left of a patch.
VisionGrid video_grid(PictureSides resized, std::int64_t frame_count, const PatchRule& rule);
std::int64_t token_count(const VisionGrid& grid, const PatchRule& rule);

/// Where in its frame each patch stands, as the tower gets them: the merge_side x merge_side of one
/// token behind each other, tokens by rows. [rows * columns] of {row, column}.
struct PatchPlace {
  std::int64_t row = 0;
  std::int64_t column = 0;
  bool operator==(const PatchPlace&) const = default;
};
std::vector<PatchPlace> patch_places(const VisionGrid& grid, std::int64_t merge_side);

/// CLIP's; in preprocessor_config.json.
struct ColourScale {
  std::array<float, kColours> mean{0.48145466F, 0.4578275F, 0.40821073F};
  std::array<float, kColours> deviation{0.26862954F, 0.26130258F, 0.27577711F};
};

/// Writes the patches of frames of `sides` (already resized), `pixels` uint8 [frames, 3, height,
/// width]: `values` [patches, 3, frames_of_patch, patch_side, patch_side], (pixel / 255 - mean) /
/// deviation. One frame fills the whole patch.
void write_patches(std::span<const std::uint8_t> pixels, PictureSides sides, const PatchRule& rule,
                   const ColourScale& scale, std::span<float> values);

}  // namespace tj::trainer
