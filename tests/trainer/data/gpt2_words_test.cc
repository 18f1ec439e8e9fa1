#include "trainer/data/gpt2_words.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>

#include <random>
#include <string>
#include <vector>

#include "contract/utf8.h"
#include "trainer/data/unicode_classes.h"

namespace tj::trainer {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view text) {
  Words words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size())
    words.push_back(gpt2_word_at(text, at));
  return words;
}

/// A pattern of PCRE2, which must match where it is asked.
class Pattern {
 public:
  explicit Pattern(std::string_view pattern) {
    int error_number = 0;
    PCRE2_SIZE error_at = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_ANCHORED, &error_number, &error_at, nullptr);
    (void)pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }

  /// Bytes that it matches at `at`; 0: none.
  std::size_t bytes_at(std::string_view text, std::size_t at) {
    const int found = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, match_, nullptr);
    return found > 0 ? pcre2_get_ovector_pointer(match_)[1] - at : 0;
  }
  bool matches(std::string_view text) { return bytes_at(text, 0) == text.size(); }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

std::string utf8_of(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

constexpr bool is_surrogate(char32_t code) { return code >= 0xd800 && code < 0xe000; }

/// \s is spelled out as Unicode's White_Space: PCRE2's own has U+180E, too.
constexpr std::string_view kSpace = R"([\t-\r\x{85}\p{Z}])";

TEST(UnicodeClasses, are_those_of_pcre2_wherever_it_knows_the_character) {
  Pattern letter(R"(\p{L})");
  Pattern number(R"(\p{N})");
  Pattern space(kSpace);
  Pattern unassigned(R"(\p{Cn})");
  int unknown = 0;
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (is_surrogate(code)) continue;
    const auto text = utf8_of(code);
    const auto expected = letter.matches(text)   ? CharacterClass::letter
                          : number.matches(text) ? CharacterClass::number
                          : space.matches(text)  ? CharacterClass::space
                                                 : CharacterClass::other;
    if (class_of(code) == expected) continue;
    ASSERT_TRUE(unassigned.matches(text)) << std::hex << static_cast<std::uint32_t>(code);
    ++unknown;
  }
  EXPECT_LT(unknown, 12'000) << "letters and numbers of Unicode 15 and 16";
}

TEST(Gpt2Words, are_cut_as_the_pattern_says) {
  EXPECT_EQ(words_of("Hello world, it's 2026!"),
            (Words{"Hello", " world", ",", " it", "'s", " 2026", "!"}));
  EXPECT_EQ(words_of("a  b \n c\n\n"), (Words{"a", " ", " b", " \n", " c", "\n\n"}));
  EXPECT_EQ(words_of("  "), (Words{"  "}));
  EXPECT_EQ(words_of("we'll 'LL ''s x'"), (Words{"we", "'ll", " '", "LL", " ''", "s", " x", "'"}));
  EXPECT_EQ(words_of("人工智能3点 。"), (Words{"人工智能", "3", "点", " 。"}));
  EXPECT_EQ(words_of("\xe3\x80\x80x"), (Words{"\xe3\x80\x80", "x"})) << "no space of ASCII's";
}

/// Texts in which each alternative of the pattern meets each other one.
std::string random_text(std::mt19937& dice) {
  static const std::vector<std::string> kPieces = {
      "'",      "s",        "t",      "re",     "ve",         "m",          "ll",
      "d",      "'s",       "'l",     " ",      "  ",         "\n",         "\t",
      "\r\n",   "a",        "Z",      "0",      "9",          "!",          "-",
      "\x7f",   "\xc2\x85", "\u00a0", "\u00b2", "\u00bd",     "\u0301",     "é",
      "\u180e", "\u2003",   "\u2028", "\u200b", "\u3000",     "人",         "。",
      "한",     "٣",        "Ⅷ",      "ไ",      "\U0001f600", "\U00020000", "\U0001d7ce"};
  std::string text;
  const auto count = dice() % 24;
  for (std::size_t i = 0; i < count; ++i) {
    if (dice() % 8 > 0) {
      text += kPieces[dice() % kPieces.size()];
      continue;
    }
    const auto code = static_cast<char32_t>(dice() % (dice() % 2 == 0 ? 0x3000 : 0x30000));
    if (!is_surrogate(code)) append_utf8(text, code);
  }
  return text;
}

TEST(Gpt2Words, are_those_of_the_pattern_in_random_texts) {
  const std::string s(kSpace.substr(1, kSpace.size() - 2));
  Pattern pattern(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" + s + R"(\p{L}\p{N}]+|[)" +
                  s + "]+(?![^" + s + "])|[" + s + "]+");
  Pattern unassigned(R"((?s).*\p{Cn})");
  std::mt19937 dice(20261125);
  int compared = 0;
  for (int round = 0; round < 60'000; ++round) {
    const std::string text = random_text(dice);
    if (unassigned.bytes_at(text, 0) > 0) continue;  // it may be of a later Unicode
    ++compared;
    Words expected;
    for (std::size_t at = 0; at < text.size(); at += expected.back().size())
      expected.push_back(std::string_view(text).substr(at, pattern.bytes_at(text, at)));
    ASSERT_EQ(words_of(text), expected) << "round " << round << ": " << text;
  }
  EXPECT_GT(compared, 30'000);
}

}  // namespace
}  // namespace tj::trainer
