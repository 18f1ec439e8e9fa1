// The pattern (openai/gpt-2: src/encoder.py), of whose alternatives the first that matches counts:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// By hand, as this is asked for each word of the text; gpt2_words_test.cc holds it to PCRE2.
#include "trainer/data/gpt2_words.h"

#include "trainer/data/classed_character.h"

namespace tj::trainer {
namespace {

/// Bytes of the contraction at `at`, where an apostrophe stands; 0: it is none.
std::size_t contraction_bytes(std::string_view text, std::size_t at) {
  const auto rest = text.substr(at + 1, 2);
  if (rest.empty()) return 0;
  switch (rest[0]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    default: return rest == "re" || rest == "ve" || rest == "ll" ? 3 : 0;
  }
}

std::size_t word_end(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t bytes = contraction_bytes(text, at); bytes > 0) return at + bytes;
  }
  const std::size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const auto first = classed_character_at(text, begin);
  if (first.kind == CharacterClass::space) return space_end(text, at);
  return run_end(text, begin + first.bytes, first.kind);
}

}  // namespace

std::string_view gpt2_word_at(std::string_view text, std::size_t at) {
  return text.substr(at, word_end(text, at) - at);
}

}  // namespace tj::trainer
