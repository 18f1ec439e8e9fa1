// Byte-level byte-pair encoding as GPT-2 has it (Radford et al., Language Models are Unsupervised
// Multitask Learners, 2019; openai/gpt-2: src/encoder.py).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/gpt2_words.h"

namespace tj::trainer {

/// A vocabulary, read by bpe_files.h. Immutable; all threads share it.
struct BpeVocabulary {
  struct Merge {
    std::uint32_t rank = 0;  // lower merges first
    std::uint32_t id = 0;    // of the merged token
  };
  std::array<std::uint32_t, 256> byte_ids{};
  std::unordered_map<std::uint64_t, Merge> merges;  // key: pair_key()
  std::uint32_t document_end = 0;                   // the id of <|endoftext|>
  std::int64_t size = 0;                            // the largest id, and one
  std::string sha256;                               // of the ids and merges, whatever file had them
};

inline std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

using TakeIds = std::function<void(std::span<const std::uint32_t>)>;

/// Encodes text; one for each thread. Special tokens in the text are text like any other. Invalid
/// UTF-8 is encoded as U+FFFD, as Hugging Face's tokenizers see it.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Gives the ids of `text` to `take`, a few thousand at a time.
  void encode(std::string_view text, const TakeIds& take);

 private:
  struct Symbol {
    std::uint32_t id = 0;
    std::int32_t previous = -1;  // indices; -1: none
    std::int32_t next = -1;
    bool is_merged = false;  // into the one before it
  };
  struct Candidate {
    std::uint32_t rank = 0;
    std::int32_t left = 0;  // ties go to the leftmost
    std::uint32_t left_id = 0;
    std::uint32_t right_id = 0;
    std::uint32_t merged_id = 0;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void encode_word(std::string_view word);
  void merge_word(std::string_view word);
  void consider(std::int32_t left);

  const BpeVocabulary& vocabulary_;
  Gpt2Words words_;
  std::vector<std::uint32_t> ids_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap
  std::unordered_map<std::string, std::vector<std::uint32_t>, TextHash, std::equal_to<>> cache_;
};

}  // namespace tj::trainer
