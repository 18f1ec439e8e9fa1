#include "trainer/data/video/video_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

VideoIndexEntry some_entry(FrameTimes times) {
  return {.name = "b/a.mp4",
          .state = {.bytes = 5000, .modified_ns = 1'700'000'000'123'456'789},
          .broken = {},
          .facts = {.height = 64,
                    .width = 96,
                    .seconds = 1.25,
                    .rate_frames = 24'000,
                    .rate_seconds = 1001,
                    .codec = "h264",
                    .times = std::move(times)}};
}

std::string refusal(const std::string& line) {
  const auto entry = index_entry_from(line);
  return entry ? "" : entry.error().message;
}

/// With `from` replaced.
std::string changed(std::string line, const std::string& from, const std::string& to) {
  const auto at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line;
  return at == std::string::npos ? line : line.replace(at, from.size(), to);
}

TEST(VideoIndex, a_line_reads_as_it_was_written) {
  for (const auto& times :
       {frame_times({0, 512, 1024}, {0}, {}), frame_times({0, 41, 83, 125}, {0, 83}, {}),
        frame_times({-3, 41, 42, 99, 100, 101, kVideoTimeMax - 1}, {-3, 41}, {}),
        frame_times({1, 1}, {1}, {})}) {
    const auto entry = some_entry(times);
    const auto again = index_entry_from(index_line(entry));
    ASSERT_TRUE(again) << describe(again.error()) << index_line(entry);
    EXPECT_EQ(*again, entry) << index_line(entry);
  }
  auto broken = some_entry({});
  broken.facts = {};
  broken.broken = "is no video: \xff";
  const auto again = index_entry_from(index_line(broken));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->broken, "is no video: \xef\xbf\xbd");
}

TEST(VideoIndex, lines_are_short_and_hold_what_people_look_for) {
  EXPECT_EQ(index_line(some_entry(frame_times({0, 512, 1024}, {0}, {}))),
            R"({"version":1,"name":"b/a.mp4","bytes":5000,"modified_ns":1700000000123456789,)"
            R"("frames":3,"width":96,"height":64,"seconds":1.25,"rate":[24000,1001],)"
            R"("codec":"h264","times":{"start":0,"step":[512,1]},"key_every":3})");
}

TEST(VideoIndex, what_can_not_be_is_refused) {
  const auto even = index_line(some_entry(frame_times({0, 512, 1024}, {0}, {})));
  const auto runs = index_line(some_entry(frame_times({0, 41, 83, 125}, {0, 41}, {})));
  for (const std::string& line : {std::string(),
                                  std::string("[]"),
                                  std::string("{"),
                                  std::string("{}"),
                                  changed(even, "\"version\":1", "\"version\":2"),
                                  changed(even, "\"frames\":3", "\"frames\":0"),
                                  changed(even, "\"frames\":3", "\"frames\":5001"),
                                  changed(even, "\"frames\":3", "\"frames\":1e300"),
                                  changed(even, "96", "-96"),
                                  changed(even, "96", "65537"),
                                  changed(even, "[512,1]", "[0,1]"),
                                  changed(even, "[512,1]", "[512,0]"),
                                  changed(even, "[512,1]", "[1000000000000000000,1]"),
                                  changed(even, "[512,1]", "512"),
                                  changed(even, "\"start\":0", "\"start\":5e18"),
                                  changed(even, "b/a.mp4", "../a.mp4"),
                                  changed(even, "b/a.mp4", "/a.mp4"),
                                  changed(even, "b/a.mp4", ""),
                                  changed(even, "1.25", "-1"),
                                  changed(even, "\"key_every\":3", "\"key_every\":0"),
                                  changed(even, "5000", "-5000"),
                                  changed(runs, "\"frames\":4", "\"frames\":5"),
                                  changed(runs, "\"frames\":4", "\"frames\":3"),
                                  changed(runs, ",42,", ",-42,"),
                                  changed(runs, ",42,83]", ",42,3]"),
                                  changed(runs, ",42,83]", ",4611686018427387904,83]"),
                                  changed(runs, "[0,1]", "[1,0]"),
                                  changed(runs, "[0,1]", "[0,4]"),
                                  changed(runs, "[0,1]", "[]")}) {
    EXPECT_NE(refusal(line), "") << line;
  }
  EXPECT_EQ(refusal(changed(even, "\"version\":1", "\"version\":2")),
            "is of version 2, this program reads 1");
  EXPECT_EQ(refusal(changed(runs, "\"frames\":4", "\"frames\":5")),
            "says 5 frames, and times of 4");
}

TEST(VideoIndex, a_file_of_lines_names_those_that_it_refuses) {
  const TemporaryFolder folder;
  const auto line = index_line(some_entry(frame_times({0, 512, 1024}, {0}, {})));
  const auto path =
      folder.write(kVideoIndexFile, line + "\n\nno JSON\n" + changed(line, "b/a", "b/c") + "\n" +
                                        line.substr(0, line.size() / 2));
  const auto index = read_video_index(path);
  ASSERT_TRUE(index) << describe(index.error());
  EXPECT_EQ(index->entries.size(), 2U);
  EXPECT_TRUE(index->entries.contains("b/c.mp4"));
  EXPECT_EQ(index->refused, (std::vector<std::string>{"line 3: is no JSON object"}));
  EXPECT_EQ(read_video_index(folder.path() / "none").error().code, Code::not_found);
}

TEST(VideoIndex, a_line_without_end_takes_no_memory) {
  const TemporaryFolder folder;
  const auto path = folder.write(kVideoIndexFile, std::string(std::size_t{40} << 20, ' ') + "\n");
  const auto index = read_video_index(path);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->refused, (std::vector<std::string>{"line 1: is too long"}));
}

}  // namespace
}  // namespace tj::trainer
