#include "trainer/data/picture/picture.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

const auto kPictures = std::filesystem::path(source_dir()) / "tests/trainer/data/pictures";
using Rgb = std::array<int, 3>;

PictureReader reader() { return PictureReader(*trainer_picture_plugin()); }

std::vector<Rgb> pixels_of(const std::string& name) {
  const auto picture = reader().read(kPictures / name);
  if (!picture) {
    ADD_FAILURE() << describe(picture.error());
    return {};
  }
  std::vector<Rgb> pixels;
  for (std::size_t at = 0; at < picture->rgb.size(); at += 3)
    pixels.push_back({static_cast<int>(picture->rgb[at]), static_cast<int>(picture->rgb[at + 1]),
                      static_cast<int>(picture->rgb[at + 2])});
  return pixels;
}

TEST(Picture, every_kind_of_png_becomes_its_colours) {
  const std::vector<Rgb> expected{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 8, 7}};
  EXPECT_EQ(pixels_of("palette.png"), expected) << "whatever its palette says of transparency";
  EXPECT_EQ(pixels_of("rgba.png"), expected);
  EXPECT_EQ(pixels_of("rgb16.png"),
            (std::vector<Rgb>{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {128, 128, 128}}));
  EXPECT_EQ(pixels_of("grey1.png"),
            (std::vector<Rgb>{{0, 0, 0}, {255, 255, 255}, {255, 255, 255}, {0, 0, 0}}));
}

/// A slope of 10 of red by column, and 15 of green by row.
TEST(Picture, jpeg_and_webp_are_near_what_was_written) {
  for (const char* const name : {"photo.jpg", "photo.webp"}) {
    const auto pixels = pixels_of(name);
    ASSERT_EQ(pixels.size(), 24U * 16) << name;
    double apart = 0;
    for (int at = 0; at < 24 * 16; ++at)
      apart += std::abs(pixels[static_cast<std::size_t>(at)][0] - 10 * (at % 24)) / (24.0 * 16);
    EXPECT_LT(apart, 12) << name;
  }
}

TEST(Picture, its_size_is_known_by_its_head) {
  const auto size = reader().size(kPictures / "wide.png");
  ASSERT_TRUE(size) << describe(size.error());
  EXPECT_EQ(*size, (PictureSize{.height = 3, .width = 20'000}));
  EXPECT_EQ(*reader().size(kPictures / "photo.jpg"), (PictureSize{.height = 16, .width = 24}));
  EXPECT_EQ(*reader().size(kPictures / "photo.webp"), (PictureSize{.height = 16, .width = 24}));
}

TEST(Picture, what_is_damaged_is_named) {
  const TemporaryFolder folder;
  for (const char* const name : {"photo.jpg", "photo.webp", "rgba.png"}) {
    std::ifstream stream(kPictures / name, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(stream)), {});
    const auto file = folder.write(name, whole.substr(0, whole.size() * 3 / 4));
    const auto picture = reader().read(file);
    ASSERT_FALSE(picture) << name;
    EXPECT_EQ(picture.error().code, Code::invalid);
    EXPECT_EQ(picture.error().subject, file.string());
  }
  const auto none = reader().read(folder.write("a.jpg", "hello"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "is neither a JPEG nor a PNG nor a WebP");
  EXPECT_EQ(reader().read(folder.write("b.jpg", "")).error().message, "is empty");
  EXPECT_EQ(reader().read(folder.path() / "c.jpg").error().code, Code::not_found);
}

}  // namespace
}  // namespace tj::trainer
