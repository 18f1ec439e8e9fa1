#include "trainer/data/prompt/prompt.h"

#include <gtest/gtest.h>

#include <limits>

namespace tj::trainer {
namespace {

/// A token is a byte.
Result<std::vector<std::int32_t>> bytes_of(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char letter : text) ids.push_back(static_cast<std::uint8_t>(letter));
  return ids;
}

TEST(Prompt, a_task_is_stripped_and_its_marks_become_spaces) {
  EXPECT_EQ(clean_task(" \t push_the\ncube\r\n"), "push the cube");
  EXPECT_EQ(clean_task("\u00a0\u3000lift\u2003"), "lift");
  EXPECT_EQ(clean_task("\u00e9"), "\u00e9");
  EXPECT_EQ(clean_task(" \n "), "");
}

TEST(Prompt, of_pi0_is_the_begin_the_task_and_the_end_of_a_line) {
  const auto prompt = make_prompt(bytes_of, {.length = 6, .bos = 2}, "a_b", {});
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->ids, (std::vector<std::int32_t>{2, 'a', ' ', 'b', '\n', 0}));
  EXPECT_EQ(prompt->count, 5);
}

TEST(Prompt, one_that_is_too_long_is_an_error_unless_it_may_be_cut) {
  const auto prompt = make_prompt(bytes_of, {.length = 4, .bos = 2}, "abc", {});
  EXPECT_EQ(describe(prompt.error()),
            "the prompt of the task \"abc\" has 5 tokens, and the model takes 4: "
            "--prompt-tokens 5 takes it whole, --cut-prompts its begin");
  const auto cut = make_prompt(bytes_of, {.length = 4, .may_be_cut = true, .bos = 2}, "abc", {});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->ids, (std::vector<std::int32_t>{2, 'a', 'b', 'c'}));
  EXPECT_EQ(cut->count, 5);
}

TEST(Prompt, of_pi05_says_the_state_in_256_words) {
  const float state[] = {
      -1, 1, 0, -1.5F, 0.999F, -0.9921875F, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(pi05_text("push_it", state), "Task: push it, State: 0 255 128 -1 255 1 255;\nAction: ");
  const auto prompt =
      make_prompt(bytes_of, {.kind = PromptKind::pi05, .length = 80, .bos = 1}, "a", {state, 1});
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->count,
            1 + static_cast<std::int64_t>(std::string("Task: a, State: 0;\nAction: ").size()));
}

}  // namespace
}  // namespace tj::trainer
