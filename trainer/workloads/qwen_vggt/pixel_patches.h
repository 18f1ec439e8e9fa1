// The patches of pictures as bytes, a quarter of what the tower gets, which makes the rest itself.
// Pure.
#pragma once
#include <cstdint>
#include <span>

#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {

/// Of frames of `sides` (already resized), `pixels` uint8 [frames, 3, height, width]: `patches`
/// uint8 [patches, 3, frames_of_patch, patch_side, patch_side]. One frame fills the whole patch;
/// the last one fills up what is left.
void write_pixel_patches(std::span<const std::uint8_t> pixels, PictureSides sides,
                         const PatchRule& rule, std::span<std::uint8_t> patches);

/// (pixel / 255 - mean) / deviation of so many patches, as many values.
void patch_values(std::span<const std::uint8_t> patches, const PatchRule& rule,
                  const ColourScale& scale, std::span<float> values);

}  // namespace tj::trainer
