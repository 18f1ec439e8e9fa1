// Times before lines, as kubelets write them, and ages as people type them.
#include "cli/logs/log_line.h"

#include <gtest/gtest.h>

namespace tj {
namespace {
using namespace std::chrono_literals;

TEST(LogLine, a_stamp_is_read_to_the_nanosecond_and_taken_off) {
  struct Case {
    const char* line;
    const char* time;  // empty: none
    const char* text;
  };
  const Case cases[] = {
      {"2026-11-21T01:10:40.123456789Z hello", "2026-11-21T01:10:40.123456789Z", "hello"},
      {"2026-11-21T01:10:40Z hello", "2026-11-21T01:10:40.000000000Z", "hello"},
      {"2026-11-21T01:10:40.1Z  two spaces", "2026-11-21T01:10:40.100000000Z", " two spaces"},
      {"2026-11-21T02:10:40.000000001+01:00 x", "2026-11-21T01:10:40.000000001Z", "x"},
      {"2026-11-21T01:10:40.1234567899Z digits", "2026-11-21T01:10:40.123456789Z", "digits"},
      {"2026-11-21T01:10:40Z ", "2026-11-21T01:10:40.000000000Z", ""},
      {"2026-11-21T01:10:40Z", "", "2026-11-21T01:10:40Z"},
      {"unable to retrieve container logs", "", "unable to retrieve container logs"},
      {"2026-13-21T01:10:40Z no such month", "", "2026-13-21T01:10:40Z no such month"},
      {"2026-11-21T01:10:40.5 no zone", "", "2026-11-21T01:10:40.5 no zone"},
      {"", "", ""},
      {" ", "", " "},
  };
  for (const Case& each : cases) {
    const StampedLine read = split_stamp(each.line);
    EXPECT_EQ(read.time ? format_log_time(*read.time) : "", each.time) << each.line;
    EXPECT_EQ(read.text, each.text) << each.line;
  }
}

TEST(LogLine, stamps_of_neighbouring_seconds_do_not_mix) {
  EXPECT_EQ(
      *split_stamp("2026-11-21T01:10:41.5Z a").time - *split_stamp("2026-11-21T01:10:40.5Z a").time,
      1s);
  EXPECT_EQ(*split_stamp("2026-11-21T01:10:40.5+01:00 a").time -
                *split_stamp("2026-11-21T01:10:40.5+00:00 a").time,
            -1h);
}

TEST(LogLine, ages_are_numbers_with_units) {
  EXPECT_EQ(parse_age("90s"), 90s);
  EXPECT_EQ(parse_age("1h30m"), 90min);
  EXPECT_EQ(parse_age("2d"), 48h);
  EXPECT_EQ(parse_age("0s"), 0s);
  for (const char* wrong : {"", "5", "s", "-5m", "1.5h", "5 m", "5w", "99999999999d", "1h 5m"})
    EXPECT_EQ(parse_age(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace tj
