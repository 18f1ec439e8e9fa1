// Lines of many logs come by their times, and as soon as nothing earlier can come.
#include "cli/logs/line_merger.h"

#include <gtest/gtest.h>

#include <random>

namespace tj {
namespace {
using namespace std::chrono_literals;

LogTime at(int ms) { return LogTime{} + std::chrono::milliseconds{ms}; }

struct Merging {
  explicit Merging(int sources) {
    for (int i = 0; i < sources; ++i) merger.add_source();
  }
  std::vector<std::string> out;
  std::vector<LogTime> times;
  LineMerger merger{[this](std::size_t source, LogTime time, std::string_view text) {
    out.push_back(std::to_string(source) + ":" + std::string(text));
    times.push_back(time);
  }};
};
using Lines = std::vector<std::string>;

TEST(LineMerger, a_line_waits_for_every_log_that_is_still_read) {
  Merging merging(2);
  merging.merger.push(0, at(2), "b");
  merging.merger.push(0, at(5), "d");
  EXPECT_EQ(merging.out, Lines{});
  merging.merger.push(1, at(1), "a");
  EXPECT_EQ(merging.out, (Lines{"1:a"}));
  merging.merger.push(1, at(3), "c");
  EXPECT_EQ(merging.out, (Lines{"1:a", "0:b", "1:c"}));
  merging.merger.end(1);
  EXPECT_EQ(merging.out, (Lines{"1:a", "0:b", "1:c", "0:d"}));
}

TEST(LineMerger, of_equal_times_the_lower_rank_goes_first_and_a_log_keeps_its_order) {
  Merging merging(2);
  merging.merger.push(1, at(5), "x");
  merging.merger.push(0, at(5), "late");
  merging.merger.push(0, at(1), "stamped early");
  merging.merger.end(0);
  merging.merger.end(1);
  EXPECT_EQ(merging.out, (Lines{"0:late", "0:stamped early", "1:x"}));
}

TEST(LineMerger, a_log_without_lines_holds_nobody_up_once_it_has_ended) {
  Merging merging(3);
  merging.merger.push(0, at(1), "a");
  merging.merger.end(1);
  merging.merger.end(1);
  EXPECT_EQ(merging.out, Lines{});
  merging.merger.end(2);
  EXPECT_EQ(merging.out, (Lines{"0:a"}));
}

TEST(LineMerger, counts_the_bytes_that_wait) {
  Merging merging(2);
  merging.merger.push(0, at(1), std::string(1000, 'x'));
  EXPECT_GE(merging.merger.waiting_bytes(0), 1000U);
  merging.merger.end(1);
  EXPECT_EQ(merging.merger.waiting_bytes(0), 0U);
}

TEST(LineMerger, random_logs_come_complete_and_in_order) {
  std::mt19937 random(7);
  Merging merging(8);
  std::vector<int> clocks(8, 0);
  for (int i = 0; i < 5'000; ++i) {
    const auto source = random() % 8;
    clocks[source] += static_cast<int>(random() % 5);
    merging.merger.push(source, at(clocks[source]), "l");
  }
  for (std::size_t source = 0; source < 8; ++source) merging.merger.end(source);
  EXPECT_EQ(merging.out.size(), 5'000U);
  EXPECT_TRUE(std::is_sorted(merging.times.begin(), merging.times.end()));
}

}  // namespace
}  // namespace tj
