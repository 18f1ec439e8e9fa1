// A byte-level byte-pair encoding as its files spell it: each byte of a token is a printable
// character.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

struct SpelledBpe {
  struct Merge {
    std::string left;
    std::string right;
    bool operator==(const Merge&) const = default;
  };
  std::map<std::string, std::int64_t> ids;  // special tokens, too
  std::vector<Merge> merges;                // what comes first merges first
  std::string document_end;                 // the token that ends a document
  bool operator==(const SpelledBpe&) const = default;
};

inline constexpr std::int64_t kBpeIdsMax = 1 << 20;
inline constexpr const char* kEndOfText = "<|endoftext|>";

/// The character that stands for each byte (openai/gpt-2: bytes_to_unicode).
std::array<std::string, 256> byte_spellings();

/// Fails where `id` can't be one.
Result<void> add_id(const std::string& token, std::int64_t id, SpelledBpe& spelled);

}  // namespace tj::trainer
