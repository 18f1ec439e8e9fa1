#include "trainer/data/qwen2_words.h"

#include <gtest/gtest.h>

#include <vector>

#include "trainer/data/normal_form.h"

namespace tj::trainer {
namespace {

// tests/interop holds ids to Hugging Face's tokenizers.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size())
    words.emplace_back(qwen2_word_at(text, at));
  return words;
}
using Words = std::vector<std::string>;

TEST(Qwen2Words, a_mark_begins_a_word_and_digits_stand_alone) {
  EXPECT_EQ(words_of("Hello (world) 42"), (Words{"Hello", " (", "world", ")", " ", "4", "2"}));
  EXPECT_EQ(words_of("(a _b"), (Words{"(a", " _", "b"}));
  EXPECT_EQ(words_of("\tx\n\ny"), (Words{"\tx", "\n\n", "y"}));
  EXPECT_EQ(words_of("a  b   \n  c !!\r\n\n"),
            (Words{"a", " ", " b", "   \n", " ", " c", " !!\r\n\n"}));
}

TEST(Qwen2Words, contractions_ignore_case) {
  EXPECT_EQ(words_of("I'M you'll'x ''S"), (Words{"I", "'M", " you", "'ll", "'x", " ''", "S"}));
  EXPECT_EQ(words_of("'\u017f's"), (Words{"'\u017f", "'s"}));
  EXPECT_EQ(words_of("'re 'r"), (Words{"'re", " '", "r"}));
}

TEST(NormalForm, accents_join_their_letters) {
  EXPECT_FALSE(may_need_composing("na\u00efve \u4e2d\u6587 \uac00"));
  EXPECT_TRUE(may_need_composing("e\u0301"));
  EXPECT_EQ(composed("e\u0301a\u0323\u0307x"), "\u00e9\u1ea1\u0307x");
  EXPECT_EQ(composed("a\u0307\u0323"), "\u1ea1\u0307") << "marks have an order";
  EXPECT_EQ(composed("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(composed("\u212b \u0958"), "\u00c5 \u0915\u093c") << "some are never composed";
  EXPECT_EQ(composed("\u0301e"), "\u0301e");
}

}  // namespace
}  // namespace tj::trainer
