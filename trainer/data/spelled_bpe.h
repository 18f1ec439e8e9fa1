// A byte-level byte-pair encoding as its files spell it: each byte of a token is a printable
// character.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// Within which parts of a text pairs merge.
enum class WordRule {
  gpt2,   // gpt2_words.h
  qwen2,  // qwen2_words.h
};

struct SpelledBpe {
  struct Merge {
    std::string left;
    std::string right;
    bool operator==(const Merge&) const = default;
  };
  std::map<std::string, std::int64_t> ids;  // special tokens, too
  std::vector<Merge> merges;                // what comes first merges first
  std::string document_end;                 // the token that ends a document
  std::set<std::string> specials = {};      // tokens that no text makes, document_end among them
  /// Tokens that a text's part of the same spelling is, before there are words.
  std::set<std::string> cut = {};
  WordRule words = WordRule::gpt2;
  bool is_composed = false;  // text is brought into form C (normal_form.h)
  bool operator==(const SpelledBpe&) const = default;
};

inline constexpr std::int64_t kBpeIdsMax = 1 << 20;
inline constexpr const char* kEndOfText = "<|endoftext|>";

/// The character that stands for each byte (openai/gpt-2: bytes_to_unicode).
std::array<std::string, 256> byte_spellings();

/// Fails where `id` can't be one.
Result<void> add_id(const std::string& token, std::int64_t id, SpelledBpe& spelled);

}  // namespace tj::trainer
