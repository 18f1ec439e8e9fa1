#include "trainer/data/video/ppm_picture.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/data/video/video_files.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

class Ppm : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) {
    return folder_.write(name, bytes);
  }
  TemporaryFolder folder_;
};

TEST_F(Ppm, reads_pixels_behind_a_head_with_comments) {
  const auto path = write("a.ppm", "P6\n# made by hand\n2 1 # wide\n255\nabcdef");
  const auto picture = open_ppm_picture(path);
  ASSERT_TRUE(picture) << describe(picture.error());
  EXPECT_EQ((*picture)->shape().width, 2);
  EXPECT_EQ((*picture)->shape().height, 1);
  std::vector<std::byte> rgb(6);
  const std::int64_t only[] = {0};
  ASSERT_TRUE((*picture)->read(only, rgb));
  EXPECT_EQ(rgb[5], std::byte{'f'});
}

TEST_F(Ppm, says_what_is_wrong_with_a_file) {
  for (const std::string bytes :
       {"", "P5 2 1 255\nab", "P6", "P6 2", "P6 2 1 65535\n", "P6 0 1 255\n",
        "P6 99999999999999999999 1 255\n", "P6 70000 1 255\n", "P6 # "}) {
    const auto picture = open_ppm_picture(write("a.ppm", bytes));
    ASSERT_FALSE(picture) << bytes;
    EXPECT_EQ(picture.error().code, Code::invalid);
    EXPECT_TRUE(picture.error().subject.ends_with("a.ppm"));
  }
}

TEST_F(Ppm, a_picture_that_ends_early_is_damaged) {
  const auto picture = open_ppm_picture(write("a.ppm", "P6 2 1 255\nabcde"));
  ASSERT_TRUE(picture);
  std::vector<std::byte> rgb(6);
  const std::int64_t only[] = {0};
  const auto read = (*picture)->read(only, rgb);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "ends early: it has 5 of 6 bytes of pixels");
}

TEST_F(Ppm, a_folder_of_them_is_one_video) {
  for (const char name : {'c', 'a', 'b'})
    write(std::string("clip/") + name + ".ppm", std::string("P6 1 1 255\n") + name + name + name);
  write("other/x.ppm", "P6 1 1 255\nxxx");
  write("other/notes.txt", "none");
  const auto found = find_videos({folder_.path().string()}, "--data");
  ASSERT_TRUE(found) << describe(found.error());
  ASSERT_EQ(found->size(), 2U);
  VideoOpener opener("/none.so");  // PPM pictures need no plug-in
  ASSERT_TRUE(opener.prepare_for(*found));
  const auto video = opener.open((*found)[0]);
  ASSERT_TRUE(video);
  EXPECT_EQ((*video)->shape().frames, 3);
  std::vector<std::byte> rgb(6);
  const std::int64_t wanted[] = {0, 2};
  ASSERT_TRUE((*video)->read(wanted, rgb));
  EXPECT_EQ(rgb[0], std::byte{'a'});
  EXPECT_EQ(rgb[3], std::byte{'c'});
}

TEST_F(Ppm, pictures_of_one_video_are_of_one_size) {
  write("a.ppm", "P6 1 1 255\naaa");
  write("b.ppm", "P6 2 1 255\nbbbbbb");
  const auto found = find_videos({folder_.path().string()}, "--data");
  VideoOpener opener("/none.so");
  const auto video = opener.open((*found)[0]);
  std::vector<std::byte> rgb(3);
  const std::int64_t second[] = {1};
  const auto read = (*video)->read(second, rgb);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "is 2 x 1, and the first picture of its folder 1 x 1");
}

TEST_F(Ppm, a_folder_without_videos_says_so) {
  write("notes.txt", "none");
  const auto found = find_videos({folder_.path().string()}, "--data");
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message.starts_with("holds no video"));
  const auto gone = find_videos({"/not/there"}, "--data");
  EXPECT_TRUE(describe(gone.error()).starts_with("--data /not/there: is not there; it must be "));
}

TEST_F(Ppm, other_videos_need_the_plug_in) {
  const auto path = write("a.mp4", "no video");
  const auto found = find_videos({path.string()}, "--data");
  VideoOpener opener("/none.so");
  const auto ready = opener.prepare_for(*found);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Code::not_found);
  EXPECT_TRUE(ready.error().message.starts_with("is missing; it must lie beside trainer-engine"));
  EXPECT_NE(ready.error().message.find("libavformat59"), std::string::npos);
}

TEST_F(Ppm, a_plug_in_that_is_no_library_is_told_from_one_that_is_missing) {
  const auto path = write("a.mp4", "no video");
  VideoOpener opener(write("libtrainer_video.so", "no library"));
  const auto ready = opener.prepare_for({{{path}}});
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.error().message.find("file too short"), std::string::npos);
  EXPECT_NE(ready.error().message.find("of the same build as trainer-engine"), std::string::npos);
}

}  // namespace
}  // namespace tj::trainer
