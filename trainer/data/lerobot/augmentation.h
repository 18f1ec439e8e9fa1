// Pictures that are a little different each time they are seen, as openpi's training makes them
// (src/openpi/models/model.py, preprocess_observation): what is done is a function of the sample's
// key alone. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/data/lerobot/resize_with_pad.h"

namespace tj::trainer {

/// What happens to one picture.
struct Augmentation {
  bool is_moved = false;  // by the three below
  double top = 0;         // of the part that is cut out, in shares of what it may be
  double left = 0;
  double turn = 0;        // radians, about the middle
  double brightness = 1;  // of each value
  double contrast = 1;    // of the distance from the picture's mean grey
  double saturation = 1;  // of the distance from the pixel's grey
  bool operator==(const Augmentation&) const = default;
};

/// For the picture of one camera. One at a wrist moves with the hand, and so is not moved: its name
/// says so.
Augmentation augmentation_of(std::uint64_t sample_key, std::string_view camera);

/// In place: rows of pixels, three bytes each. What comes from outside is black.
void augment(std::span<std::byte> rgb, PictureSize size, const Augmentation& by);

}  // namespace tj::trainer
