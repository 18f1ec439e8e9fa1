// A log that is cut off at any line, and asked for again by whole seconds: each line comes once.
#include "cli/logs/resume_point.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;

struct Line {
  LogTime time;
  std::string text;
  bool operator==(const Line&) const = default;
};

const LogTime kStart{std::chrono::hours{24 * 365 * 56}};

/// What a kubelet sends of `file`: everything that is not older than the whole second `since`.
std::vector<Line> stream(const std::vector<Line>& file, std::optional<LogTime> since) {
  std::vector<Line> lines;
  for (const Line& line : file) {
    if (!since || line.time >= std::chrono::floor<std::chrono::seconds>(*since))
      lines.push_back(line);
  }
  return lines;
}

/// Reads `file` with a break after each of the given numbers of lines of a stream.
std::vector<Line> read_with_breaks(const std::vector<Line>& file, const std::vector<int>& breaks) {
  ResumePoint point;
  std::vector<Line> read;
  for (std::size_t turn = 0; turn <= breaks.size(); ++turn) {
    point.stream_begins();
    int count = 0;
    for (const Line& line : stream(file, point.since())) {
      if (turn < breaks.size() && count++ == breaks[turn]) break;
      if (point.take(line.time, line.text)) read.push_back(line);
    }
  }
  return read;
}

TEST(ResumePoint, each_line_comes_once_wherever_the_stream_breaks) {
  const std::vector<Line> file = {{kStart, "a"},         {kStart, "a"},         {kStart + 1ns, "a"},
                                  {kStart + 500ms, "b"}, {kStart + 1s, "c"},    {kStart + 1s, "d"},
                                  {kStart + 1s, "c"},    {kStart + 2500ms, "e"}};
  for (int first = 0; first <= 8; ++first) {
    for (int second = 0; second <= 8; ++second)
      EXPECT_EQ(read_with_breaks(file, {first, second}), file) << first << " " << second;
  }
}

TEST(ResumePoint, lines_whose_times_are_not_in_their_order_are_neither_lost_nor_repeated) {
  const std::vector<Line> file = {{kStart + 1s, "out"},
                                  {kStart + 999ms, "err, stamped before"},
                                  {kStart + 1001ms, "out"},
                                  {kStart + 1000ms, "err, stamped before"}};
  for (int broken_after = 0; broken_after <= 4; ++broken_after)
    EXPECT_EQ(read_with_breaks(file, {broken_after}), file) << broken_after;
}

TEST(ResumePoint, random_logs_with_random_breaks) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Line> file;
    LogTime time = kStart;
    for (int i = 0; i < 200; ++i) {
      time += std::chrono::milliseconds{random() % 40};  // many of one time
      const auto back = std::chrono::milliseconds{random() % 5 == 0 ? random() % 3 : 0};
      file.push_back({time - back, std::string(1, static_cast<char>('a' + random() % 3))});
    }
    std::vector<int> breaks;
    for (int i = 0; i < 6; ++i) breaks.push_back(static_cast<int>(random() % 120));
    EXPECT_EQ(read_with_breaks(file, breaks), file) << "seed " << seed;
  }
}

TEST(ResumePoint, a_log_that_was_rotated_away_in_between_goes_on_with_its_new_lines) {
  ResumePoint point;
  point.stream_begins();
  EXPECT_TRUE(point.take(kStart, "a"));
  EXPECT_TRUE(point.take(kStart + 1ms, "b"));
  point.stream_begins();
  EXPECT_TRUE(point.take(kStart + 1ms, "c")) << "of the same nanosecond, and new";
  EXPECT_TRUE(point.take(kStart + 2ms, "d"));
}

TEST(ResumePoint, what_lies_before_the_tail_is_not_new) {
  ResumePoint point(/*is_tail=*/true);
  point.stream_begins();
  EXPECT_TRUE(point.take(kStart + 10ms, "the last but one"));
  EXPECT_TRUE(point.take(kStart + 20ms, "the last"));
  point.stream_begins();
  EXPECT_FALSE(point.take(kStart + 5ms, "before the tail"));
  EXPECT_FALSE(point.take(kStart + 10ms, "the last but one"));
  EXPECT_FALSE(point.take(kStart + 20ms, "the last"));
  EXPECT_TRUE(point.take(kStart + 30ms, "new"));
}

TEST(ResumePoint, equal_lines_of_a_stream_that_does_not_break_are_all_new) {
  ResumePoint point;
  point.stream_begins();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(point.take(kStart, "same"));
}

TEST(ResumePoint, beyond_its_memory_lines_are_told_by_their_time) {
  ResumePoint point;
  point.stream_begins();
  const auto count = static_cast<int>(ResumePoint::kRememberedMax) + 1'000;
  const auto time_of = [](int i) { return kStart + std::chrono::microseconds{i}; };
  for (int i = 0; i < count; ++i) ASSERT_TRUE(point.take(time_of(i), "x"));
  point.stream_begins();
  for (int i = 0; i < count; ++i) ASSERT_FALSE(point.take(time_of(i), "x")) << i;
  EXPECT_TRUE(point.take(time_of(count), "x"));
}

}  // namespace
}  // namespace tj
