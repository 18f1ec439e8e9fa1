// Without videos; tests/lerobot has those of LeRobot's own data sets.
#include "trainer/data/lerobot/robot_frames.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

LeRobotSet two_episodes() {
  LeRobotSet set{.folder = "/data/reach", .name = "reach"};
  set.info.features["observation.images.top"] = {.dtype = "video", .shape = {4, 4, 3}};
  set.info.features["observation.image"] = {.dtype = "image", .shape = {4, 4, 3}};
  set.info.fps = 10;
  set.info.frames = 5;
  set.meta.cameras = {"observation.images.top"};
  set.meta.tasks = {"lift", "push"};
  set.meta.episodes = {{.first_frame = 0, .length = 3, .videos = {{}}},
                       {.first_frame = 3, .length = 2, .videos = {{}}}};
  set.meta.videos = {"videos/a.mp4"};
  set.state = {.width = 1, .values = {0, 1, 2, 3, 4}};
  set.action = {.width = 2, .values = {0, 10, 1, 11, 2, 12, 3, 13, 4, 14}};
  set.timestamps = {0, 0.1F, 0.2F, 0, 0.1F};
  set.tasks = {0, 0, 0, 1, 1};
  return set;
}

Result<std::vector<std::int32_t>> letters(std::string_view text) {
  return std::vector<std::int32_t>(text.begin(), text.end());
}

Result<std::unique_ptr<RobotFrames>> frames_of(RobotFramesOptions options) {
  VideoOpener opener("/nowhere/libtrainer_video.so");
  return RobotFrames::make(two_episodes(), {}, letters, opener, std::move(options));
}

RobotFramesOptions options() {
  return {.cameras = {},
          .picture = {.height = 2, .width = 2},
          .horizon = 3,
          .state_width = 2,
          .action_width = 3,
          .normalisation = Normalisation::none,
          .is_delta = {true},
          .prompt = {.length = 8, .bos = 1}};
}

struct Sample {
  std::vector<std::byte> images, image_mask;
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(8);
  std::vector<std::byte> token_mask = std::vector<std::byte>(8);
  std::vector<float> state = std::vector<float>(2);
  std::vector<float> actions = std::vector<float>(9);
  std::vector<std::byte> pad = std::vector<std::byte>(3);
  RobotFramePlace place() { return {images, image_mask, tokens, token_mask, state, actions, pad}; }
};

TEST(RobotFrames, a_chunk_ends_with_its_episode) {
  const auto frames = frames_of(options());
  ASSERT_TRUE(frames);
  EXPECT_EQ((*frames)->count(), 5);
  Sample sample;
  ASSERT_TRUE((*frames)->read(1, 0, sample.place()));
  EXPECT_EQ(sample.state, (std::vector<float>{1, 0}));
  EXPECT_EQ(sample.actions, (std::vector<float>{0, 11, 0, 1, 12, 0, 1, 12, 0}));
  const auto yes = std::byte{1}, no = std::byte{0};
  EXPECT_EQ(sample.pad, (std::vector<std::byte>{no, no, yes}));
  EXPECT_EQ(sample.tokens, (std::vector<std::int32_t>{1, 'l', 'i', 'f', 't', '\n', 0, 0}));
  EXPECT_EQ(sample.token_mask, (std::vector<std::byte>{yes, yes, yes, yes, yes, yes, no, no}));
  ASSERT_TRUE((*frames)->read(4, 0, sample.place()));
  EXPECT_EQ(sample.actions, (std::vector<float>{0, 14, 0, 0, 14, 0, 0, 14, 0}));
}

TEST(RobotFrames, only_the_chosen_episodes_are_read) {
  auto chosen = options();
  chosen.episodes = {1};
  const auto frames = frames_of(chosen);
  ASSERT_TRUE(frames);
  EXPECT_EQ((*frames)->count(), 2);
  EXPECT_EQ((*frames)->frame(1).number, 4);
  EXPECT_EQ((*frames)->frame(1).episode, 1U);
}

TEST(RobotFrames, a_missing_camera_is_black_and_masked) {
  auto with_two = options();
  with_two.prompt.kind = PromptKind::pi05;
  with_two.prompt.length = 64;
  const auto error = frames_of(with_two);
  ASSERT_TRUE(error);  // prompts are made as they are read
  auto wrong = options();
  wrong.cameras = {{.name = "base_0_rgb", .feature = "observation.images.front"}};
  EXPECT_EQ(describe(frames_of(wrong).error()),
            "--data /data/reach: has no camera \"observation.images.front\", for base_0_rgb; its "
            "cameras are observation.image, observation.images.top");
  wrong.cameras = {{.name = "base_0_rgb", .feature = "observation.image"}};
  EXPECT_NE(describe(frames_of(wrong).error()).find("is stored as pictures in Parquet"),
            std::string::npos);
  wrong.cameras = {{.name = "base_0_rgb", .feature = ""}};
  EXPECT_NE(describe(frames_of(wrong).error()).find("none of the policy's cameras"),
            std::string::npos);
}

TEST(RobotFrames, what_does_not_fit_is_named) {
  auto wrong = options();
  wrong.action_width = 1;
  EXPECT_EQ(describe(frames_of(wrong).error()),
            "--data /data/reach: its action has 2 numbers, and the policy takes 1");
  wrong = options();
  wrong.is_delta = {false, true};
  EXPECT_EQ(describe(frames_of(wrong).error()),
            "--data /data/reach: dimension 1 of the actions is to be minus that of the state, and "
            "the state has 1, the action 2");
  wrong = options();
  wrong.prompt.length = 5;
  EXPECT_EQ(describe(frames_of(wrong).error()),
            "--data /data/reach: task 0: the prompt of the task \"lift\" has 6 tokens, and the "
            "model takes 5: --prompt-tokens 6 takes it whole, --cut-prompts its begin");
  wrong = options();
  wrong.normalisation = Normalisation::mean_std;
  EXPECT_FALSE(frames_of(wrong));
  wrong = options();
  wrong.cameras = {{.name = "base_0_rgb", .feature = "observation.images.top"}};
  EXPECT_EQ(frames_of(wrong).error().code, Code::not_found);  // the plug-in
}

TEST(RobotFrames, held_out_episodes_are_evenly_spread) {
  const auto split = split_episodes(10, 0.2);
  EXPECT_EQ(split.held_out, (std::vector<std::size_t>{4, 9}));
  EXPECT_EQ(split.train.size(), 8U);
  EXPECT_TRUE(split_episodes(10, 0).held_out.empty());
}

}  // namespace
}  // namespace tj::trainer
