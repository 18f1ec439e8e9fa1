#include "trainer/process/last_words.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

class LastWords : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "words-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    say_in(folder_ / "log");
  }
  void TearDown() override {
    ::unsetenv("TRAININGJOB_TERMINATION_LOG");
    fs::remove_all(folder_);
  }
  static void say_in(const fs::path& path) {
    ::setenv("TRAININGJOB_TERMINATION_LOG", path.c_str(), 1);
  }
  std::string text() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(LastWords, what_is_written_is_what_the_operator_reads) {
  const Outcome outcome{
      .reason = "BadData", .message = "\"/data\" is empty", .rank = 3, .step = 12, .attempt = 1};
  write_last_words(outcome);
  const auto read = from_termination_message(text());
  ASSERT_TRUE(read.ok()) << text();
  EXPECT_EQ(*read, outcome);
}

TEST_F(LastWords, the_last_ones_replace_longer_ones) {
  write_last_words({.reason = "A", .message = std::string(3000, 'x'), .rank = {}, .step = {}});
  write_last_words({.reason = "B", .message = "short", .rank = {}, .step = {}});
  const auto read = from_termination_message(text());
  ASSERT_TRUE(read.ok()) << text();
  EXPECT_EQ(read->reason, "B");
}

TEST_F(LastWords, a_place_that_can_not_be_written_is_no_failure) {
  say_in(folder_ / "no-such-folder" / "log");
  write_last_words({.reason = "A", .message = "lost", .rank = {}, .step = {}});
  EXPECT_FALSE(fs::exists(folder_ / "no-such-folder"));
}

TEST_F(LastWords, outside_of_a_pod_nothing_is_made_in_dev) {
  ::unsetenv("TRAININGJOB_TERMINATION_LOG");
  if (fs::exists("/dev/termination-log")) GTEST_SKIP() << "this is a pod: the file is there";
  write_last_words({.reason = "A", .message = "lost", .rank = {}, .step = {}});
  EXPECT_FALSE(fs::exists("/dev/termination-log"));
}

}  // namespace
}  // namespace tj::trainer
