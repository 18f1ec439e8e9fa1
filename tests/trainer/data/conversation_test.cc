#include "trainer/data/conversation/conversation.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/data/conversation/conversation_file.h"
#include "trainer/data/conversation/conversation_set.h"

namespace tj::trainer {
namespace {

Conversation conversation_of(const std::string& json) {
  auto found = conversation_from(json);
  if (!found) {
    ADD_FAILURE() << describe(found.error());
    return {};
  }
  return std::move(*found);
}
std::string flaw_of(const std::string& json) {
  const auto found = conversation_from(json);
  return found ? "none" : describe(found.error());
}

constexpr const char* kLlava = R"({"id": 1, "images": ["a.png", "b.jpg"], "conversations": [
  {"from": "human", "value": "<image>\n<image>\nwhere?"}, {"from": "gpt", "value": "left"}]})";

TEST(Conversation, all_ways_to_write_one_are_the_same) {
  const auto expected = conversation_of(kLlava);
  EXPECT_EQ(expected.shown, (std::vector<ShownFile>{{"a.png", false}, {"b.jpg", false}}));
  EXPECT_EQ(expected.turns[1], (SpokenTurn{Speaker::assistant, "left"}));
  EXPECT_EQ(conversation_of(R"({"image": ["a.png", "b.jpg"], "messages": [
      {"role": "user", "content": "<image>\n<image>\nwhere?"},
      {"role": "assistant", "content": "left"}]})"),
            expected);
  EXPECT_EQ(conversation_of(R"({"images": ["b.jpg"], "messages": [
      {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "\n"},
        {"type": "image"}, {"type": "text", "text": "\nwhere?"}]},
      {"role": "assistant", "content": "left"}]})"),
            expected);
  EXPECT_EQ(conversation_of(R"({"images": ["a.png", "b.jpg"], "messages": [
      {"role": "user", "content": "where?"}, {"role": "assistant", "content": "left"}]})"),
            expected)
      << "without marks pictures come first";
}

TEST(Conversation, what_is_wrong_is_named) {
  const auto with = [](const std::string& turns, const std::string& more = "") {
    return "{" + more + "\"conversations\": [" + turns + "]}";
  };
  const std::string asked = R"({"from": "human", "value": "<image> <image>?"})";
  const std::string answered = R"({"from": "gpt", "value": "a"})";
  EXPECT_EQ(flaw_of("{"), "is no JSON (cut short?)");
  EXPECT_EQ(flaw_of("7"), "is no JSON object");
  EXPECT_EQ(flaw_of("{}"), "has neither conversations nor messages");
  EXPECT_EQ(flaw_of(with(R"({"from": "human", "value": "?"})")),
            "has no answer (a turn of gpt or assistant): there is nothing to learn");
  EXPECT_EQ(flaw_of(with(asked + "," + answered, R"("image": "a.png", )")),
            "has 2 marks <image> and 1 pictures: each needs the other");
  EXPECT_EQ(flaw_of(with(R"({"from": "robot", "value": "?"})")),
            "conversations[0].from must be human, user, gpt, assistant, model or system, and is "
            "\"robot\"");
  EXPECT_EQ(flaw_of(with(R"({"from": "gpt"})")), "conversations[0].value is missing");
  EXPECT_EQ(flaw_of(with(R"({"from": "gpt", "value": 7})")),
            "conversations[0].value must be text, and is 7");
  EXPECT_EQ(flaw_of(R"({"images": [7], "messages": []})"), "images[0] must be text, and is 7");
}

TEST(Conversation, a_text_of_marks_takes_no_quadratic_time) {
  std::string marks;
  for (int i = 0; i < 1'000'000; ++i) marks += "<image>";
  EXPECT_EQ(flaw_of(R"({"image": "a.png", "messages": [{"role": "user", "content": ")" + marks +
                    R"("}]})"),
            "has 1000000 marks <image> and 1 pictures: each needs the other");
}

TEST(Conversation, videos_have_marks_of_their_own) {
  const auto expected = conversation_of(R"({"video": "v.mp4", "image": "a.png", "conversations": [
      {"from": "human", "value": "<image> then <video>\n?"}, {"from": "gpt", "value": "left"}]})");
  EXPECT_EQ(expected.shown, (std::vector<ShownFile>{{"a.png", false}, {"v.mp4", true}}));
  EXPECT_EQ(conversation_of(R"({"messages": [{"role": "user", "content": [
      {"type": "image", "image": "a.png"}, {"type": "text", "text": " then "},
      {"type": "video", "video": "v.mp4"}, {"type": "text", "text": "\n?"}]},
      {"role": "assistant", "content": "left"}]})"),
            expected);
  EXPECT_EQ(flaw_of(R"({"videos": ["v.mp4"], "messages": [
      {"role": "user", "content": "<video><video>"}, {"role": "assistant", "content": "a"}]})"),
            "has 2 marks <video> and 1 videos: each needs the other");
  EXPECT_EQ(flaw_of(R"({"video": {"path": "v.mp4"}, "messages": []})"),
            "video must be text, and is object");
}

TEST(Conversation, one_that_is_asked_to_be_gone_on_with_ends_with_the_user) {
  const auto open = [](const std::string& json) {
    const auto read = open_conversation_from(json);
    return read ? read->turns : std::vector<SpokenTurn>();
  };
  const std::vector<SpokenTurn> expected{{Speaker::user, "<image>where?"}};
  EXPECT_EQ(open(R"({"conversations": [{"from": "human", "value": "<image>where?"},
      {"from": "gpt", "value": "left"}, {"from": "gpt", "value": "or"}], "images": ["a.png"]})"),
            expected);
  EXPECT_EQ(open(R"({"messages": [{"role": "user", "content": "<image>where?"}], "image": "a"})"),
            expected);
  const auto flaw = [](const char* json) {
    const auto read = open_conversation_from(json);
    return read ? "none" : describe(read.error());
  };
  EXPECT_EQ(flaw("[1"), "is no JSON (cut short?)");
  EXPECT_EQ(flaw(R"({"conversations": [{"from": "gpt", "value": "a"}]})"),
            "conversations has no turn of the user to be answered");
  EXPECT_EQ(flaw(R"({"messages": []})"), "messages has no turn of the user to be answered");
  EXPECT_EQ(flaw(R"({"messages": [{"role": "user", "content": "<video>"}]})"),
            "has 1 marks <video> and 0 videos: each needs the other");
}

TEST(Conversation, only_the_newest_pictures_are_kept) {
  auto conversation =
      conversation_of(R"({"images": ["1", "2", "3", "4"], "video": "v", "messages": [
      {"role": "user", "content": "history <image>\n<image>\n<video> now <image>?"},
      {"role": "assistant", "content": "a <image>"},
      {"role": "user", "content": "<image>"}, {"role": "assistant", "content": "b"}]})");
  keep_newest_pictures(conversation, 3);
  EXPECT_EQ(conversation.shown.size(), 5U) << "four pictures are three and the newest";
  keep_newest_pictures(conversation, 1);
  EXPECT_EQ(conversation.turns[0].text, "history <video> now <image>?");
  EXPECT_EQ(conversation.turns[1].text, "a <image>") << "what an answer says is text";
  EXPECT_EQ(conversation.shown, (std::vector<ShownFile>{{"v", true}, {"3", false}, {"4", false}}));
  EXPECT_TRUE(cut_behind_answer(conversation, 3));
  EXPECT_EQ(conversation.turns.size(), 2U);
  EXPECT_EQ(conversation.shown, (std::vector<ShownFile>{{"v", true}, {"3", false}}));
  EXPECT_FALSE(cut_behind_answer(conversation, 1));
}

TEST(ConversationFile, an_array_and_lines_hold_the_same) {
  const TemporaryFolder folder;
  const std::string one = R"({"a": "}] \" [{", "b": [{}]})", two = R"({"c": {"d": []}})";
  for (const auto& text :
       {"[\n" + one + ",\n " + two + "]\n", one + "\n" + two, one + two + "\n\n"}) {
    const auto file = ConversationFile::open(folder.write("data.json", text));
    ASSERT_TRUE(file) << text << describe(file.error());
    ASSERT_EQ(file->count(), 2) << text;
    EXPECT_EQ(*file->text(0), one);
    EXPECT_EQ(*file->text(1), two);
  }
}

TEST(ConversationFile, what_is_none_is_refused_with_the_byte) {
  const TemporaryFolder folder;
  const auto flaw = [&](const std::string& text) {
    const auto path = folder.write("data.json", text);
    const auto file = ConversationFile::open(path);
    return file ? "none" : describe(file.error()).substr(path.string().size() + 2);
  };
  EXPECT_EQ(flaw("hello"),
            "is neither a JSON array of conversations nor JSON lines of them (at byte 0)");
  EXPECT_EQ(flaw("[{}, 7]"),
            "has no conversation, an object in braces, where one comes (at byte 5)");
  EXPECT_EQ(flaw("[{} {}]"), "has a conversation where a comma, or nothing, comes (at byte 4)");
  EXPECT_EQ(flaw("[{}"), "ends before the ] of its array: is it cut short?");
  EXPECT_EQ(flaw("{} {\"a\": 1"), "ends inside of the conversation that begins at byte 3");
  EXPECT_EQ(flaw("[]"), "holds no conversation");
}

TEST(ConversationSet, paths_begin_at_the_root_or_at_the_folder_of_their_file) {
  const TemporaryFolder folder;
  folder.write("set/a.png", "x");
  folder.write("root/b.png", "x");
  const auto file = folder.write("set/data.jsonl", "{}\n");
  const auto own = ConversationSet::open({.paths = {file.string()}});
  ASSERT_TRUE(own) << describe(own.error());
  EXPECT_EQ(*own->path_of(0, {.path = "a.png"}), folder.path() / "set/a.png");
  EXPECT_NE(
      describe(own->path_of(0, {.path = "b.png"}).error()).find("as --data-root says no other"),
      std::string::npos);
  const auto root = ConversationSet::open({.paths = {(folder.path() / "set").string()},
                                           .data_root = (folder.path() / "root").string()});
  ASSERT_TRUE(root) << describe(root.error());
  EXPECT_EQ(*root->path_of(0, {.path = "b.png"}), folder.path() / "root/b.png");
  const auto missing = ConversationSet::open({.paths = {file.string()}, .data_root = "/nowhere"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().subject, "--data-root /nowhere");
}

}  // namespace
}  // namespace tj::trainer
