#include "trainer/data/lerobot/resize_with_pad.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

std::vector<std::byte> picture(PictureSize size, int (*value)(std::int64_t, std::int64_t)) {
  std::vector<std::byte> rgb;
  for (std::int64_t row = 0; row < size.height; ++row)
    for (std::int64_t column = 0; column < size.width; ++column)
      rgb.insert(rgb.end(), 3, static_cast<std::byte>(value(row, column)));
  return rgb;
}

TEST(ResizeWithPad, a_picture_lies_in_the_middle_as_large_as_it_fits) {
  const PictureSize square{224, 224};
  EXPECT_EQ(padded_place({480, 640}, square), (PaddedPlace{{168, 224}, 28, 0}));
  EXPECT_EQ(padded_place({640, 480}, square), (PaddedPlace{{224, 168}, 0, 28}));
  EXPECT_EQ(padded_place({96, 96}, square), (PaddedPlace{{224, 224}, 0, 0}));
  EXPECT_EQ(padded_place({1, 1000}, square).size, (PictureSize{1, 224}));
}

// tests/lerobot holds it to Pillow, byte for byte.
TEST(ResizeWithPad, one_colour_stays_one_and_the_rest_is_black) {
  const PictureSize from{6, 12}, to{8, 8};
  const auto made = resized_with_pad(picture(from, [](auto, auto) { return 200; }), from, to);
  ASSERT_EQ(made.size(), 8U * 8 * 3);
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_EQ(made[row * 24 + i], (row < 2 || row > 5 ? std::byte{0} : std::byte{200})) << row;
}

TEST(ResizeWithPad, half_as_large_mixes_a_triangle_of_pixels) {
  const PictureSize from{1, 4}, to{1, 2};
  const auto made =
      resized(picture(from, [](auto, auto column) { return column == 0 ? 70 : 0; }), from, to);
  // Of the first pixel: weights 3, 3, 1 of 7.
  EXPECT_EQ(made[0], std::byte{30});
  EXPECT_EQ(made[3], std::byte{0});
}

}  // namespace
}  // namespace tj::trainer
