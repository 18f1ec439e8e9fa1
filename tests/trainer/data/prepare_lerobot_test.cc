// What of it is pure; tests/lerobot has the whole command on data sets of LeRobot's own.
#include "trainer/data/lerobot/prepare_lerobot.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

LeRobotSet set_of(const std::vector<std::int64_t>& lengths) {
  LeRobotSet set;
  set.state = {.width = 1, .values = {}};
  set.action = {.width = 2, .values = {}};
  for (const auto length : lengths) {
    set.meta.episodes.push_back({.first_frame = set.info.frames, .length = length});
    set.info.frames += length;
  }
  for (std::int64_t frame = 0; frame < set.info.frames; ++frame) {
    set.state.values.push_back(static_cast<float>(frame));
    set.action.values.push_back(static_cast<float>(10 * frame));
    set.action.values.push_back(static_cast<float>(-frame));
  }
  return set;
}

TEST(PrepareLeRobot, a_mask_is_counts_of_dimensions) {
  EXPECT_EQ(*delta_mask_from("2,-1,1"), (std::vector<bool>{true, true, false, true}));
  EXPECT_TRUE(delta_mask_from("")->empty());
  for (const char* wrong : {"0", "2,", "2,,1", "a", "1.5", "99999999"})
    EXPECT_EQ(describe(delta_mask_from(wrong).error()),
              std::string("--delta-actions ") + wrong +
                  ": must be counts of dimensions, as 6,-1: six that are minus the state, and one "
                  "that is not");
}

TEST(PrepareLeRobot, episodes_share_parts_and_none_is_cut) {
  EXPECT_EQ(frame_parts(set_of({3, 4})), (std::vector<FramePart>{{0, 7}}));
  EXPECT_EQ(frame_parts(set_of({60'000, 10'000, 70'000, 1})),
            (std::vector<FramePart>{
                {0, 60'000}, {60'000, 70'000}, {70'000, 140'000}, {140'000, 140'001}}));
}

TEST(PrepareLeRobot, actions_minus_the_state_are_those_of_all_chunks_within_the_episode) {
  const auto set = set_of({3, 1});
  const FramePart all{0, 4};
  EXPECT_EQ(action_values(set, all, 0, {}), (std::vector<float>{0, 10, 20, 30}));
  const ActionRule rule{.is_delta = {true, false}, .horizon = 2};
  EXPECT_EQ(action_values(set, all, 0, rule), (std::vector<float>{0, 10, 9, 19, 18, 27}));
  EXPECT_EQ(action_values(set, all, 1, rule), (std::vector<float>{0, -1, -1, -2, -2, -3}));
  EXPECT_EQ(state_values(set, {1, 3}, 0), (std::vector<float>{1, 2}));
}

TEST(PrepareLeRobot, a_frame_knows_its_episode) {
  const auto set = set_of({3, 1, 2});
  EXPECT_EQ(episode_of(set, 0), 0U);
  EXPECT_EQ(episode_of(set, 2), 0U);
  EXPECT_EQ(episode_of(set, 3), 1U);
  EXPECT_EQ(episode_of(set, 5), 2U);
}

}  // namespace
}  // namespace tj::trainer
