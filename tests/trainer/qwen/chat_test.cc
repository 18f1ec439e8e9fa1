#include "trainer/workloads/qwen_vggt/chat.h"

#include <gtest/gtest.h>

#include <map>

namespace tj::trainer {
namespace {

using Turns = std::vector<ChatTurn>;
using enum ChatRole;

constexpr ChatIds kIds;

/// A letter is a token, and a text says itself again.
std::vector<std::int32_t> letters(std::string_view text) { return {text.begin(), text.end()}; }

std::string text_of(std::span<const std::int32_t> ids) {
  static const std::map<std::int32_t, std::string> kNames{{kIds.turn_begin, "<s>"},
                                                          {kIds.turn_end, "<e>"},
                                                          {kIds.vision.begin, "<v>"},
                                                          {kIds.vision.end, "</v>"},
                                                          {kIds.vision.image, "<i>"},
                                                          {kIds.vision.video, "<f>"},
                                                          {kNoLabel, "."}};
  std::string text;
  for (const auto id : ids) {
    const auto name = kNames.find(id);
    text += name == kNames.end() ? std::string(1, static_cast<char>(id)) : name->second;
  }
  return text;
}

ChatTokens tokens_of(const Turns& turns, const std::vector<ChatVision>& vision = {},
                     ChatEnd end = ChatEnd::complete) {
  const auto found = chat_tokens(turns, vision, kIds, letters, end);
  if (!found) {
    ADD_FAILURE() << describe(found.error());
    return {};
  }
  return *found;
}

std::string flaw_of(const Turns& turns, const std::vector<ChatVision>& vision = {}) {
  const auto found = chat_tokens(turns, vision, kIds, letters);
  return found ? "none" : describe(found.error());
}

TEST(Chat, a_conversation_is_laid_out_as_qwens_template_has_it) {
  EXPECT_EQ(text_of(tokens_of({{user, "Hi"}, {assistant, "Ho"}}).ids),
            "<s>system\nYou are a helpful assistant.<e>\n<s>user\nHi<e>\n<s>assistant\nHo<e>\n");
  EXPECT_EQ(
      text_of(tokens_of({{ChatRole::system, "Be brief."}, {user, ""}, {assistant, "Ho"}}).ids),
      "<s>system\nBe brief.<e>\n<s>user\n<e>\n<s>assistant\nHo<e>\n");
}

/// One letter is one token here, and "assistant" nine of them: the mask is of three tokens.
TEST(Chat, only_what_the_assistant_says_is_learned) {
  const auto one_word = [](std::string_view text) {
    std::vector<std::int32_t> ids;
    for (const char* const word : {"system", "user", "assistant"})
      if (text.starts_with(word)) {
        ids.push_back('#');
        text.remove_prefix(std::string_view(word).size());
      }
    const auto rest = letters(text);
    ids.insert(ids.end(), rest.begin(), rest.end());
    return ids;
  };
  const Turns turns{
      {ChatRole::system, "S"}, {user, "U"}, {assistant, "A"}, {user, "V"}, {assistant, "BC"}};
  const auto found = chat_tokens(turns, {}, kIds, one_word);
  ASSERT_TRUE(found);
  EXPECT_EQ(text_of(found->ids), "<s>#\nS<e>\n<s>#\nU<e>\n<s>#\nA<e>\n<s>#\nV<e>\n<s>#\nBC<e>\n");
  EXPECT_EQ(text_of(found->labels), "...............A<e>\n.........BC<e>\n");
  EXPECT_EQ(found->learned(), 7);
}

TEST(Chat, pictures_and_videos_stand_at_their_marks) {
  const std::vector<ChatVision> vision{{.tokens = 2}, {.is_video = true, .tokens = 3}};
  const auto tokens =
      tokens_of({{user, "<image>\nand <video>?"}, {assistant, "No <image>."}}, vision);
  EXPECT_NE(text_of(tokens.ids).find("<s>user\n<v><i><i></v>\nand <v><f><f><f></v>?<e>\n"),
            std::string::npos)
      << text_of(tokens.ids);
  EXPECT_NE(text_of(tokens.ids).find("No <image>."), std::string::npos);  // only users show things
  EXPECT_EQ(tokens.ids.size(), tokens.labels.size());
}

/// Text between two special tokens is given to the tokenizer as one piece.
TEST(Chat, pieces_of_text_end_at_special_tokens) {
  std::vector<std::string> pieces;
  const auto remember = [&](std::string_view text) {
    pieces.emplace_back(text);
    return letters(text);
  };
  const Turns turns{{ChatRole::system, "S"}, {user, "a<image>b"}, {assistant, "c"}};
  const ChatVision one{.tokens = 1};
  ASSERT_TRUE(chat_tokens(turns, {&one, 1}, kIds, remember));
  EXPECT_EQ(pieces, (std::vector<std::string>{"system\nS", "\n", "user\na", "b", "\n",
                                              "assistant\nc", "\n"}));
}

TEST(Chat, a_turn_may_be_left_open) {
  const auto tokens = tokens_of({{user, "Hi"}}, {}, ChatEnd::open);
  EXPECT_TRUE(text_of(tokens.ids).ends_with("<s>user\nHi<e>\n<s>assistant\n"));
  EXPECT_EQ(tokens.learned(), 0);
  EXPECT_EQ(tokens.labels.size(), tokens.ids.size());
}

TEST(Chat, what_is_no_conversation_is_named) {
  EXPECT_NE(flaw_of({}).find("has no turns"), std::string::npos);
  EXPECT_NE(flaw_of({{user, "Hi"}}).find("nothing to learn"), std::string::npos);
  const Turns turns{{user, "<image><image>"}, {assistant, "A"}};
  EXPECT_NE(flaw_of(turns, {{.tokens = 1}}).find("more marks than its 1"), std::string::npos);
  EXPECT_NE(flaw_of(turns, {{}, {}, {}}).find("has 2 marks for its 3"), std::string::npos);
  EXPECT_NE(flaw_of(turns, {{}, {.is_video = true}}).find("mark 2 is <image>, and a video"),
            std::string::npos);
}

TEST(Chat, a_token_is_judged_where_the_one_before_it_stands) {
  const std::vector<std::int32_t> labels{7, kNoLabel, kNoLabel, 4, 5, kNoLabel};
  EXPECT_EQ(chat_targets(labels), (std::vector<ChatTarget>{{2, 4}, {3, 5}}));
  EXPECT_TRUE(chat_targets({}).empty());
}

}  // namespace
}  // namespace tj::trainer
