// Learns the merges of a byte-pair encoding from words and their counts (Sennrich et al., Neural
// Machine Translation of Rare Words with Subword Units, 2016): the most frequent pair becomes a
// token, again and again. Pure.
//
// Step by step what the trainer of Hugging Face's tokenizers does (models/bpe/trainer.rs), so that
// the result is the same: of equally frequent pairs the one of the smaller ids comes first; a text
// that two pairs make is one token.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/word_counts.h"

namespace tj::trainer {

struct BpeTraining {
  std::vector<std::string> first_tokens;      // by id: those that are there before any merge
  std::array<std::uint32_t, 256> byte_ids{};  // which of them each byte is
  std::size_t vocabulary_size = 0;
  std::int64_t pair_count_min = 1;  // a rarer pair makes no token; at least 1
  /// Asked before each merge, with the number of tokens that are there: true ends it.
  std::function<bool(std::size_t tokens)> should_stop;
};

struct LearnedBpe {
  struct Merge {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    bool operator==(const Merge&) const = default;
  };
  std::vector<std::string> tokens;  // by id: their bytes
  std::vector<Merge> merges;
  std::int64_t text_tokens = 0;  // that all words together are now
};

/// `words` have at most 4 GiB in all. Fewer tokens than asked for where no pair is frequent enough.
LearnedBpe learn_bpe(std::span<const CountedWord> words, const BpeTraining& training);

}  // namespace tj::trainer
