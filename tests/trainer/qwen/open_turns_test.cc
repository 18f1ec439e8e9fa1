// Conversations that are asked to be gone on with.
#include "trainer/workloads/qwen_vggt/open_turns.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(OpenTurns, both_forms_say_the_same_and_answers_at_the_end_are_left_out) {
  const auto ours = open_turns_from(
      R"({"conversations": [{"from": "human", "value": "<image>where?"}, {"from": "gpt", "value": "left"}], "images": ["a.png"]})",
      "/data");
  ASSERT_TRUE(ours) << describe(ours.error());
  EXPECT_EQ(ours->turns, (std::vector<ChatTurn>{{ChatRole::user, "<image>where?"}}));
  EXPECT_EQ(ours->pictures, (std::vector<std::filesystem::path>{"/data/a.png"}));
  const auto theirs = open_turns_from(
      R"({"messages": [{"role": "user", "content": "<image>where?"}], "image": "/pictures/a.png"})",
      "/data");
  ASSERT_TRUE(theirs) << describe(theirs.error());
  EXPECT_EQ(theirs->turns, ours->turns);
  EXPECT_EQ(theirs->pictures.front(), "/pictures/a.png");
}

TEST(OpenTurns, what_is_wrong_is_named) {
  const auto error_of = [](const char* text) {
    const auto read = open_turns_from(text, "");
    return read ? "" : describe(read.error());
  };
  EXPECT_EQ(error_of("[1"), "conversation: is not a JSON object (cut short?)");
  EXPECT_EQ(error_of("{}"), "conversation: has neither conversations nor messages");
  EXPECT_EQ(error_of(R"({"messages": [{"role": "cat", "content": ""}]})"),
            "messages[0].role: is \"cat\"; it must be human, user, gpt, assistant or system");
  EXPECT_EQ(error_of(R"({"conversations": [{"from": "human"}]})"),
            "conversations[0].value: is no text");
  EXPECT_EQ(error_of(R"({"conversations": [{"from": "gpt", "value": "a"}]})"),
            "conversations: has no turn of the user to be answered");
  EXPECT_EQ(error_of(R"({"messages": [{"role": "user", "content": "a"}], "images": [1]})"),
            "images: must be the name of a file, or a list of them");
}

}  // namespace
}  // namespace tj::trainer
