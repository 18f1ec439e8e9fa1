#include "trainer/data/video/frame_times.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace tj::trainer {
namespace {
using Times = std::vector<std::int64_t>;

void expect_same(const FrameTimes& times, const Times& shown) {
  ASSERT_EQ(times.frames, static_cast<std::int64_t>(shown.size()));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(times.at(static_cast<std::int64_t>(i)), shown[i]) << i;
    EXPECT_EQ(times.number_at(shown[i]), static_cast<std::int64_t>(i));
  }
}

TEST(FrameTimes, even_ones_are_a_start_and_a_step) {
  const Times shown{-512, 0, 512, 1024, 1536};
  const auto times = frame_times(shown, {-512, 1024}, {});
  EXPECT_EQ(times.step, (FrameStep{.units = 512, .frames = 1}));
  EXPECT_TRUE(times.runs.empty());
  expect_same(times, shown);
  EXPECT_EQ(times.number_at(100), std::nullopt);
  EXPECT_EQ(times.number_at(-600), std::nullopt);
  EXPECT_EQ(times.number_at(1537), std::nullopt);
}

/// Matroska counts milliseconds: 24 frames a second are 41 or 42 of them.
TEST(FrameTimes, rounded_ones_are_a_step_of_a_fraction) {
  Times shown;
  for (std::int64_t i = 0; i < 100; ++i) shown.push_back(7 + (i * 1000 + 12) / 24);
  const auto times = frame_times(shown, {7}, {.units = 1000, .frames = 24});
  ASSERT_TRUE(times.step);
  EXPECT_EQ(times.step, (FrameStep{.units = 125, .frames = 3}));
  expect_same(times, shown);
}

TEST(FrameTimes, others_are_runs) {
  const Times shown{0, 10, 20, 30, 100, 107, 114, 5000};
  const auto times = frame_times({5000, 10, 0, 30, 20, 100, 114, 107}, {0, 30}, {});
  EXPECT_FALSE(times.step);
  EXPECT_LE(times.runs.size(), 5U);
  expect_same(times, shown);
  EXPECT_EQ(times.keys, (Times{0, 3}));
  EXPECT_EQ(times.key_before(2), 0);
  EXPECT_EQ(times.key_before(3), 3);
  EXPECT_EQ(times.key_before(7), 3);
}

TEST(FrameTimes, keys_at_even_distances_are_one_number) {
  Times shown(25), keys;
  std::iota(shown.begin(), shown.end(), 0);
  for (std::int64_t key = 0; key < 25; key += 12) keys.push_back(key);
  const auto times = frame_times(shown, keys, {});
  EXPECT_EQ(times.key_every, 12);
  EXPECT_TRUE(times.keys.empty());
  EXPECT_EQ(times.key_before(11), 0);
  EXPECT_EQ(times.key_before(24), 24);
  keys.pop_back();
  EXPECT_EQ(frame_times(shown, keys, {}).key_every, 0);
  const auto single = frame_times(shown, {0}, {});
  EXPECT_EQ(single.key_before(24), 0);
}

TEST(FrameTimes, frames_before_the_first_key_begin_there) {
  const auto times = frame_times({0, 1, 2, 3}, {2}, {});
  EXPECT_EQ(times.key_before(0), 2);
}

TEST(FrameTimes, what_can_not_be_told_apart_is_counted) {
  constexpr auto kNone = std::numeric_limits<std::int64_t>::min();  // AV_NOPTS_VALUE
  for (const auto& times :
       {frame_times({0, 1, 1, 2}, {0}, {}), frame_times({0, 1}, {}, {}),
        frame_times({kNone, 1, 2}, {1}, {}), frame_times({0, kVideoTimeMax}, {0}, {})}) {
    EXPECT_FALSE(times.are_known());
    EXPECT_GE(times.frames, 2);
  }
}

}  // namespace
}  // namespace tj::trainer
