#include "trainer/workloads/qwen_vggt/mrope.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

using Numbers = std::vector<std::int64_t>;
using Tokens = std::vector<std::int32_t>;
constexpr MropeRule kRule{.ids = {.begin = 1, .end = 2, .image = 8, .video = 9}};

MropePositions of(const Tokens& tokens, const std::vector<VisionInput>& inputs) {
  const auto found = mrope_positions(tokens, inputs, kRule);
  if (!found) {
    ADD_FAILURE() << describe(found.error());
    return {};
  }
  return *found;
}

TEST(Mrope, text_advances_all_axes_alike) {
  const auto positions = of({5, 5, 5}, {});
  for (const auto& axis : positions.axes) EXPECT_EQ(axis, (Numbers{0, 1, 2}));
  EXPECT_EQ(positions.next, 3);
}

/// 2 x 3 tokens behind two of text; what follows stands behind the widest side.
TEST(Mrope, a_picture_stands_still_in_time) {
  const auto positions =
      of({5, 1, 8, 8, 8, 8, 8, 8, 2, 5}, {{.grid = {.frames = 1, .rows = 4, .columns = 6}}});
  EXPECT_EQ(positions.axes[0], (Numbers{0, 1, 2, 2, 2, 2, 2, 2, 5, 6}));
  EXPECT_EQ(positions.axes[1], (Numbers{0, 1, 2, 2, 2, 3, 3, 3, 5, 6}));
  EXPECT_EQ(positions.axes[2], (Numbers{0, 1, 2, 3, 4, 2, 3, 4, 5, 6}));
  EXPECT_EQ(positions.next, 7);
}

TEST(Mrope, a_video_advances_by_its_seconds) {
  struct Row {
    float seconds;
    Numbers times;  // of its four frames
    std::int64_t next;
  };
  const Row rows[] = {{1, {0, 2, 4, 6}, 8},  // time runs further than rows and columns
                      {0.5F, {0, 1, 2, 3}, 5},
                      {0.25F, {0, 0, 1, 1}, 3},  // two positions of a second, rounded down
                      {0.75F, {0, 1, 3, 4}, 6},
                      {0, {0, 0, 0, 0}, 2},
                      {1.0F / 3, {0, 0, 1, 2}, 4}};  // 3 x 2/3 in float32 is 2
  for (const auto& row : rows) {
    const auto positions = of({5, 9, 9, 9, 9, 5}, {{.grid = {.frames = 4, .rows = 2, .columns = 2},
                                                    .is_video = true,
                                                    .seconds_of_frame = row.seconds}});
    for (std::size_t frame = 0; frame < 4; ++frame) {
      EXPECT_EQ(positions.axes[0][frame + 1], 1 + row.times[frame]) << row.seconds;
      EXPECT_EQ(positions.axes[1][frame + 1], 1);
    }
    EXPECT_EQ(positions.axes[2].back(), row.next) << row.seconds;
  }
}

TEST(Mrope, a_second_picture_begins_behind_the_first) {
  const VisionInput square{.grid = {.frames = 1, .rows = 4, .columns = 4}};
  const auto positions = of({8, 8, 8, 8, 2, 1, 8, 8, 8, 8}, {square, square});
  EXPECT_EQ(positions.axes[1], (Numbers{0, 0, 1, 1, 2, 3, 4, 4, 5, 5}));
  EXPECT_EQ(positions.next, 6);
}

TEST(Mrope, what_does_not_fit_is_named) {
  const VisionInput square{.grid = {.frames = 1, .rows = 4, .columns = 4}};
  VisionInput video = square;
  video.is_video = true;
  VisionInput backwards = video;
  backwards.seconds_of_frame = -1;
  struct Row {
    Tokens tokens;
    std::vector<VisionInput> inputs;
    const char* flaw;
  };
  const Row rows[] = {{{5, 8, 8, 8}, {square}, "token 1: 3 pads for 4 tokens"},
                      {{8, 8, 8, 8}, {}, "more runs of pads than the 0"},
                      {{5}, {square}, "1 pictures and videos, but 0 runs"},
                      {{8, 8, 8, 8}, {video}, "a picture stand where a video comes"},
                      {{9, 9, 9, 9}, {square}, "a video stand where a picture comes"},
                      {{9, 9, 9, 9}, {backwards}, "less than no time"}};
  for (const auto& row : rows) {
    const auto found = mrope_positions(row.tokens, row.inputs, kRule);
    ASSERT_FALSE(found) << row.flaw;
    EXPECT_NE(describe(found.error()).find(row.flaw), std::string::npos) << describe(found.error());
  }
}

TEST(Mrope, an_endless_second_stays_a_number) {
  const auto positions = of({9, 9}, {{.grid = {.frames = 2, .rows = 2, .columns = 2},
                                      .is_video = true,
                                      .seconds_of_frame = 1e30F}});
  EXPECT_EQ(positions.axes[0][1], 1'000'000'000);
}

}  // namespace
}  // namespace tj::trainer
