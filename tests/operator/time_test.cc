#include <gtest/gtest.h>

#include "operator/api/types.h"

namespace tj {
namespace {

TimePoint at_ms(long long ms) { return TimePoint{std::chrono::milliseconds{ms}}; }

TEST(Time, is_written_as_kubernetes_writes_it) {
  EXPECT_EQ(format_time(at_ms(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_time(at_ms(1'795'223'440'999)), "2026-11-21T01:10:40Z");
  EXPECT_EQ(format_time(at_ms(951'782'400'000)), "2000-02-29T00:00:00Z");
}

TEST(Time, is_read_with_fractions_and_offsets) {
  EXPECT_EQ(parse_time("2026-11-21T01:10:40Z"), at_ms(1'795'223'440'000));
  EXPECT_EQ(parse_time("2026-11-21T01:10:40.123456Z"), at_ms(1'795'223'440'123));
  EXPECT_EQ(parse_time("2026-11-21T03:10:40+02:00"), at_ms(1'795'223'440'000));
  EXPECT_EQ(parse_time("2026-11-20T20:10:40-05:00"), at_ms(1'795'223'440'000));
}

TEST(Time, that_is_none_is_refused) {
  for (const char* text :
       {"", "yesterday", "2026-11-21", "2026-13-21T01:10:40Z", "2026-02-30T01:10:40Z",
        "2026-11-21T25:10:40Z", "2026-11-21T01:10:40", "2026-11-21T01:10:40Zx",
        "2026-11-21T01:10:40+02", "2026-11-21T-1:10:40Z"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Time, round_trips_by_the_second) {
  for (long long ms = 0; ms < 4'000'000'000'000; ms += 86'399'000 * 37LL) {
    const TimePoint time = at_ms(ms / 1000 * 1000);
    EXPECT_EQ(parse_time(format_time(time)), time);
  }
}

}  // namespace
}  // namespace tj
