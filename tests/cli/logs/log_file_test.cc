// A log file that grows while it is read.
#include "cli/logs/log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace tj {
namespace {

struct LogFileTest : testing::Test {
  ~LogFileTest() override { std::filesystem::remove(path); }
  void write(const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  std::vector<std::string> read(bool is_final = false) {
    std::vector<std::string> lines;
    file.read(1'000'000, is_final, [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tj-log-file-test-" + std::to_string(getpid()));
  LogFile file{path};
};
using Lines = std::vector<std::string>;

TEST_F(LogFileTest, gives_whole_lines_and_at_the_end_the_rest) {
  EXPECT_EQ(read(), Lines{}) << "it is not there yet";
  write("a\nb");
  EXPECT_EQ(read(), Lines{"a"});
  write("c\n\nd");
  EXPECT_EQ(read(), (Lines{"bc", ""}));
  EXPECT_EQ(read(/*is_final=*/true), Lines{"d"});
  EXPECT_EQ(read(/*is_final=*/true), Lines{});
}

TEST_F(LogFileTest, gives_no_more_lines_than_asked_for) {
  write("a\nb\nc\n");
  Lines lines;
  const auto take = [&](std::string_view line) { lines.emplace_back(line); };
  EXPECT_TRUE(file.read(2, false, take));
  EXPECT_EQ(lines, (Lines{"a", "b"}));
  EXPECT_EQ(read(), Lines{"c"});
}

TEST_F(LogFileTest, begins_at_the_tail) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + "\n";
  write(text);
  file.seek_to_tail(3);
  EXPECT_EQ(read(), (Lines{"49997", "49998", "49999"}));
  file = LogFile(path);
  file.seek_to_tail(1'000'000);
  EXPECT_EQ(read().size(), 50'000U);
  file = LogFile(path);
  file.seek_to_tail(0);
  write("new\n");
  EXPECT_EQ(read(), Lines{"new"});
}

TEST_F(LogFileTest, a_line_without_an_end_comes_in_pieces) {
  write(std::string(LogFile::kLineBytesMax + 5, 'x') + "\n");
  const auto lines = read();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), LogFile::kLineBytesMax);
  EXPECT_EQ(lines[1], "xxxxx");
}

}  // namespace
}  // namespace tj
