// Byte-level byte-pair encoding as GPT-2 has it (Radford et al., Language Models are Unsupervised
// Multitask Learners, 2019; openai/gpt-2: src/encoder.py), and as Qwen2 has it.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/merge_table.h"
#include "trainer/data/spelled_bpe.h"

namespace tj::trainer {

/// A vocabulary, read by bpe_files.h. Immutable; all threads share it.
struct BpeVocabulary {
  std::array<std::uint32_t, 256> byte_ids{};
  MergeTable merges;
  std::uint32_t document_end = 0;  // the id of <|endoftext|>, or of the file's own special token
  std::int64_t size = 0;           // the largest id, and one
  /// Of tokens that no text makes, and of those that are cut out of text as they are.
  std::map<std::string, std::uint32_t> specials = {};
  std::map<std::string, std::uint32_t> cut = {};
  WordRule words = WordRule::gpt2;
  bool is_composed = false;
  std::string sha256;          // of the ids and merges, whatever file had them
  std::string tokenizer_json;  // its file, or the one that the other two are as much as
};

using TakeIds = std::function<void(std::span<const std::uint32_t>)>;

/// Encodes text; one for each thread. Special tokens in the text are text like any other. Invalid
/// UTF-8 is encoded as U+FFFD, as Hugging Face's tokenizers see it.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeVocabulary& vocabulary);

  /// Gives the ids of `text` to `take`, a few thousand at a time.
  void encode(std::string_view text, const TakeIds& take);

 private:
  /// A cache line: nearly all words of English, and the short ones of Chinese, fit.
  struct alignas(64) CachedWord {
    static constexpr std::size_t kBytesMax = 22;
    static constexpr std::size_t kIdsMax = 10;
    std::uint8_t bytes = 0;  // 0: none
    std::uint8_t id_count = 0;
    std::array<char, kBytesMax> word{};
    std::array<std::uint32_t, kIdsMax> ids{};
  };
  static_assert(sizeof(CachedWord) == 64);
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
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void encode_plain(std::string_view text, const TakeIds& take);
  void give_if_many(const TakeIds& take);
  void encode_word(std::string_view word);
  void merge_word(std::string_view word);
  void merge_long_word(std::string_view word);
  void consider(std::int32_t left);

  const BpeVocabulary& vocabulary_;
  std::string cut_firsts_;
  std::vector<std::uint32_t> ids_;
  std::vector<CachedWord> cache_;      // each word has one place, which it takes from another
  std::vector<Symbol> symbols_;        // of a long word
  std::vector<Candidate> candidates_;  // a heap
};

}  // namespace tj::trainer
