#include "trainer/data/bpe_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "trainer/data/pair_counts.h"

namespace tj::trainer {
namespace {

using Merges = std::vector<LearnedBpe::Merge>;

/// A byte's id is its number, so that merges can be written down.
BpeTraining training(std::size_t more_tokens, std::int64_t pair_count_min = 1) {
  BpeTraining training;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    training.first_tokens.emplace_back(1, static_cast<char>(byte));
    training.byte_ids[byte] = byte;
  }
  training.vocabulary_size = 256 + more_tokens;
  training.pair_count_min = pair_count_min;
  return training;
}

/// The definition, word by word in each step.
Merges merges_by_definition(const std::vector<CountedWord>& counted, std::size_t wanted) {
  std::vector<std::vector<std::uint32_t>> words;
  for (const auto& word : counted) {
    words.emplace_back();
    for (const char byte : word.text) words.back().push_back(static_cast<std::uint8_t>(byte));
  }
  Merges merges;
  while (merges.size() < wanted) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
    for (std::size_t w = 0; w < words.size(); ++w) {
      for (std::size_t i = 0; i + 1 < words[w].size(); ++i)
        counts[{words[w][i], words[w][i + 1]}] += counted[w].count;
    }
    if (counts.empty()) break;
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto [left, right] = best->first;
    const auto id = static_cast<std::uint32_t>(256 + merges.size());
    merges.push_back({left, right});
    for (auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] = id;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

TEST(BpeTraining, the_most_frequent_pair_comes_first_and_ties_go_to_smaller_ids) {
  const std::vector<CountedWord> words = {{"abc", 3}, {"bcd", 2}, {"ed", 5}};
  const auto learned = learn_bpe(words, training(4));
  // bc: 5, and ed: 5. Then a(bc): 3, then (bc)d: 2.
  EXPECT_EQ(learned.merges, (Merges{{'b', 'c'}, {'e', 'd'}, {'a', 256}, {256, 'd'}}));
  EXPECT_EQ(learned.tokens.back(), "bcd");
  EXPECT_EQ(learned.text_tokens, 3 + 2 + 5);
}

TEST(BpeTraining, equals_its_definition_on_random_words) {
  std::mt19937 dice(11);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> texts(30);
    std::vector<CountedWord> words;
    for (auto& text : texts) {
      for (std::uint32_t i = 0; i < 1 + dice() % 12; ++i)
        text += static_cast<char>('a' + dice() % 12);
      words.push_back({.text = text, .count = 1 + dice() % 20});
    }
    const auto learned = learn_bpe(words, training(40));
    ASSERT_EQ(learned.merges, merges_by_definition(words, 40)) << round;
  }
}

TEST(BpeTraining, what_is_too_rare_and_what_is_not_asked_for_is_no_token) {
  const std::vector<CountedWord> words = {{"abab", 4}, {"xy", 2}, {"z", 9}};
  EXPECT_EQ(learn_bpe(words, training(100, 3)).merges, (Merges{{'a', 'b'}, {256, 256}}));
  EXPECT_EQ(learn_bpe(words, training(1)).merges, (Merges{{'a', 'b'}}));
  EXPECT_EQ(learn_bpe(words, training(0)).merges, Merges{});
  EXPECT_EQ(learn_bpe({}, training(10)).tokens.size(), 256U);
}

TEST(BpeTraining, ends_when_it_is_told_to) {
  const std::vector<CountedWord> words = {{"abcdefgh", 1}};
  auto asked = training(100);
  asked.should_stop = [](std::size_t tokens) { return tokens == 258; };
  EXPECT_EQ(learn_bpe(words, asked).merges.size(), 2U);
}

TEST(PairCounts, pairs_that_are_gone_make_room) {
  PairCounts counts;
  std::map<std::uint64_t, std::int64_t> expected;
  std::mt19937_64 dice(5);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t key = dice() % 3000 * 0x100000001U;
    counts.at(key).count += 1;
    expected[key] += 1;
    const std::uint64_t once = (1ULL << 40) + static_cast<std::uint64_t>(i);
    counts.at(once).count += 1;
    counts.at(once).count -= 1;
  }
  for (const auto& [key, count] : expected) EXPECT_EQ(counts.count_of(key), count);
  EXPECT_EQ(counts.count_of(77), 0);
}

}  // namespace
}  // namespace tj::trainer
