#include "trainer/data/word_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>

namespace tj::trainer {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

Counts all_of(const WordCounts& counts) {
  Counts all;
  for (const auto& [text, count] : counts.all()) all[std::string(text)] = count;
  return all;
}

Counts counted(const std::vector<std::string>& texts, int threads, WordLimits limits) {
  WordCounts counts(limits);
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        WordCounter counter(counts);
        for (auto i = static_cast<std::size_t>(thread); i < texts.size();
             i += static_cast<std::size_t>(threads)) {
          counter.count(texts[i]);
          counter.flush();
        }
      });
    }
  }
  return all_of(counts);
}

/// Short words that come again and again, and long ones that hardly do.
std::vector<std::string> texts_of_many_words() {
  std::mt19937 dice(7);
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) {
    std::string text;
    for (int word = 0; word < 300; ++word) {
      text += " w";
      const int letters = word % 3 == 0 ? 1 : 20;
      for (int letter = 0; letter < letters; ++letter)
        text += static_cast<char>('a' + dice() % (letters == 1 ? 26 : 3));
    }
    texts.push_back(text);
  }
  return texts;
}

double bytes_of(const Counts& counts) {
  double bytes = 0;
  for (const auto& [word, count] : counts)
    bytes += static_cast<double>(word.size()) * static_cast<double>(count);
  return bytes;
}

TEST(WordCounts, each_word_is_counted) {
  EXPECT_EQ(counted({"a b b", "a  c"}, 1, {}), (Counts{{"a", 2}, {" b", 2}, {" ", 1}, {" c", 1}}));
  EXPECT_EQ(counted({"x\xff"}, 1, {}), (Counts{{"x", 1}, {"\xef\xbf\xbd", 1}}))
      << "as it is encoded";
}

TEST(WordCounts, a_long_word_counts_as_pieces_of_whole_characters) {
  std::string word = "y";
  for (int i = 0; i < 800; ++i) word += "人";
  Counts expected{{word.substr(0, 1 + 341 * 3), 1}, {word.substr(1 + 341 * 3, 341 * 3), 1}};
  expected[word.substr(1 + 2 * 341 * 3)] = 1;
  EXPECT_EQ(counted({word}, 1, {}), expected);
}

TEST(WordCounts, what_is_left_out_depends_on_the_words_alone) {
  const auto texts = texts_of_many_words();
  const auto whole = counted(texts, 1, {});
  const WordLimits limits{.words_max = 3000, .bytes_max = 40'000};
  const auto first = counted(texts, 1, limits);
  EXPECT_LE(first.size(), limits.words_max);
  std::size_t bytes = 0;
  std::set<std::uint64_t> factors;
  for (const auto& [word, count] : first) {
    bytes += word.size();
    const bool is_long = word.size() > 15;
    const auto exact = whole.at(word);
    if (is_long) factors.insert(count / exact);
    EXPECT_EQ(count % exact, 0U) << word;
    EXPECT_TRUE(is_long || count == exact) << word;
  }
  EXPECT_EQ(factors, std::set<std::uint64_t>{16}) << "440 kB, halved four times";
  EXPECT_LE(bytes, limits.bytes_max);
  EXPECT_GT(bytes, limits.bytes_max / 3) << "no more than is needed";
  EXPECT_NEAR(bytes_of(first) / bytes_of(whole), 1, 0.1) << "those that stay stand for the others";
  for (const int threads : {2, 4, 7}) EXPECT_EQ(counted(texts, threads, limits), first) << threads;
}

TEST(WordCounts, short_words_go_last_and_no_bound_is_too_small) {
  const auto few = counted(texts_of_many_words(), 2, {.words_max = 10, .bytes_max = 1000});
  EXPECT_LE(few.size(), 10U);
}

}  // namespace
}  // namespace tj::trainer
