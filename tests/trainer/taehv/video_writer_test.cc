#include "trainer/data/video/video_writer.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/data/video/video_files.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr VideoShape kSmall{.frames = 3, .height = 2, .width = 1};

Result<std::unique_ptr<VideoWriter>> create(const fs::path& out) {
  return create_video({.out = out, .shape = kSmall, .plugin = "/none.so"});
}

std::vector<std::byte> frame_of(char value) { return std::vector(6, std::byte(value)); }

TEST(VideoWriter, pictures_need_no_library_and_are_read_back_in_their_order) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "pictures";
  auto writer = create(out.string() + "/");  // as a shell completes it
  ASSERT_TRUE(writer) << describe(writer.error());
  for (const char value : {'a', 'b', 'c'}) ASSERT_TRUE((*writer)->write(frame_of(value)));
  EXPECT_FALSE(fs::exists(out));
  ASSERT_TRUE((*writer)->finish());
  const auto found = find_videos({out.string()}, "--in");
  ASSERT_TRUE(found) << describe(found.error());
  VideoOpener opener("/none.so");
  const auto video = opener.open(found->front());
  ASSERT_TRUE(video);
  EXPECT_EQ((*video)->shape().frames, 3);
  EXPECT_FALSE((*video)->shape().rate.is_known());
  std::vector<std::byte> rgb(6);
  const std::int64_t last[] = {2};
  ASSERT_TRUE((*video)->read(last, rgb));
  EXPECT_EQ(rgb, frame_of('c'));
}

TEST(VideoWriter, one_that_is_not_finished_leaves_nothing) {
  const TemporaryFolder folder;
  {
    const auto writer = create(folder.path() / "pictures");
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(frame_of('a')));
  }
  EXPECT_EQ(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

TEST(VideoWriter, says_what_is_wrong_with_a_name) {
  const TemporaryFolder folder;
  const auto there = folder.write("there.mkv", "mine");
  const auto taken = create(there);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::conflict);
  EXPECT_EQ(taken.error().message, "is there already; another name is needed");
  const auto other = create(folder.path() / "a.webm");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::invalid);
  EXPECT_TRUE(other.error().message.starts_with("ends with .webm; it must be .mkv"));
  EXPECT_EQ(create("").error().code, Code::invalid);
  EXPECT_EQ(create("/").error().code, Code::invalid);
  const auto nowhere = create(folder.path() / "none" / "pictures");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::unavailable);
}

TEST(VideoWriter, a_file_needs_the_plug_in) {
  const TemporaryFolder folder;
  const auto writer = create(folder.path() / "a.mkv");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::invalid);
  EXPECT_NE(writer.error().message.find("libavformat59"), std::string::npos);
}

TEST(FrameRate, is_a_number_or_a_fraction) {
  EXPECT_EQ(frame_rate_from("24"), (FrameRate{24, 1}));
  EXPECT_EQ(frame_rate_from("24000/1001"), (FrameRate{24000, 1001}));
  for (const char* const text : {"", "/", "24/", "/1", "24/0", "0", "-24", "-24/-1", "1001",
                                 "1/1001", "29.97", "24 ", "24/1/1", "99999999999"})
    EXPECT_FALSE(frame_rate_from(text)) << text;
  EXPECT_EQ(to_string(FrameRate{24000, 1001}), "24000/1001");
  EXPECT_EQ(to_string(FrameRate{25, 1}), "25");
  EXPECT_FALSE(FrameRate{}.is_known());
}

}  // namespace
}  // namespace tj::trainer
