#include "trainer/data/lerobot/augmentation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tj::trainer {
namespace {

constexpr PictureSize kSize{16, 16};

std::vector<std::byte> picture() {
  std::vector<std::byte> rgb;
  for (int i = 0; i < 16 * 16 * 3; ++i) rgb.push_back(static_cast<std::byte>(i * 7 % 251));
  return rgb;
}

TEST(Augmentation, is_a_function_of_the_sample_and_the_camera) {
  EXPECT_EQ(augmentation_of(5, "base_0_rgb"), augmentation_of(5, "base_0_rgb"));
  std::set<double> turns;
  for (std::uint64_t key = 0; key < 100; ++key) {
    const auto by = augmentation_of(key, "base_0_rgb");
    turns.insert(by.turn);
    turns.insert(augmentation_of(key, "other").turn);
    EXPECT_LE(std::abs(by.turn), 5 * M_PI / 180);
    EXPECT_TRUE(by.brightness >= 0.7 && by.brightness <= 1.3) << by.brightness;
    EXPECT_TRUE(by.contrast >= 0.6 && by.contrast <= 1.4) << by.contrast;
    EXPECT_TRUE(by.saturation >= 0.5 && by.saturation <= 1.5) << by.saturation;
  }
  EXPECT_EQ(turns.size(), 200U);
}

TEST(Augmentation, a_camera_at_a_wrist_is_not_moved) {
  EXPECT_TRUE(augmentation_of(1, "base_0_rgb").is_moved);
  EXPECT_FALSE(augmentation_of(1, "left_wrist_0_rgb").is_moved);
}

TEST(Augmentation, nothing_to_do_leaves_the_picture) {
  auto rgb = picture();
  augment(rgb, kSize, {});
  EXPECT_EQ(rgb, picture());
  augment(rgb, kSize, {.brightness = 0});
  EXPECT_EQ(rgb, std::vector<std::byte>(rgb.size()));
}

TEST(Augmentation, colours_go_to_grey_and_a_turn_brings_black) {
  auto rgb = picture();
  augment(rgb, kSize, {.saturation = 0});
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    EXPECT_EQ(rgb[i], rgb[i + 1]);
    EXPECT_EQ(rgb[i], rgb[i + 2]);
  }
  std::vector<std::byte> white(rgb.size(), std::byte{255});
  augment(white, kSize, {.is_moved = true, .top = 0.5, .left = 0.5, .turn = M_PI / 4});
  EXPECT_EQ(white.front(), std::byte{0});
  EXPECT_EQ(white[(8 * 16 + 8) * 3], std::byte{255});
}

}  // namespace
}  // namespace tj::trainer
