// The pattern (openai/gpt-2: src/encoder.py), of whose alternatives the first that matches counts:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// By hand, as this is asked for each word of the text; gpt2_words_test.cc holds it to PCRE2.
#include "trainer/data/gpt2_words.h"

#include <array>
#include <cstdint>

#include "trainer/data/unicode_classes.h"

namespace tj::trainer {
namespace {

struct Character {
  CharacterClass kind;
  std::size_t bytes;
};

std::uint32_t byte_of(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// Of two bytes and more; `text` is valid, so that they are all there.
Character long_character_at(std::string_view text, std::size_t at) {
  const std::uint32_t first = byte_of(text, at);
  const auto more = [&](std::size_t i) { return byte_of(text, at + i) & 0x3f; };
  if (first < 0xe0) return {class_of((first & 0x1f) << 6 | more(1)), 2};
  if (first < 0xf0) return {class_of((first & 0x0f) << 12 | more(1) << 6 | more(2)), 3};
  return {class_of((first & 0x07) << 18 | more(1) << 12 | more(2) << 6 | more(3)), 4};
}

constexpr std::array<CharacterClass, 128> ascii_classes() {
  std::array<CharacterClass, 128> classes{};
  for (unsigned char byte = 0; byte < 128; ++byte) {
    const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool is_space = byte == ' ' || (byte >= '\t' && byte <= '\r');
    classes[byte] = is_letter                    ? CharacterClass::letter
                    : byte >= '0' && byte <= '9' ? CharacterClass::number
                    : is_space                   ? CharacterClass::space
                                                 : CharacterClass::other;
  }
  return classes;
}
constexpr auto kAscii = ascii_classes();

Character character_at(std::string_view text, std::size_t at) {
  const std::uint32_t first = byte_of(text, at);
  if (first < 0x80) return {kAscii[first], 1};
  return long_character_at(text, at);
}

/// Where the characters of `kind` end that begin at `at`.
std::size_t run_end(std::string_view text, std::size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

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

/// The end of white space that begins at `at`: its last character belongs to what follows, if
/// anything does and it is not the only one.
std::size_t space_end(std::string_view text, std::size_t at) {
  std::size_t last = at;
  std::size_t end = at;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (character.kind != CharacterClass::space) break;
    last = end;
    end += character.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

std::size_t word_end(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t bytes = contraction_bytes(text, at); bytes > 0) return at + bytes;
  }
  const std::size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const Character first = character_at(text, begin);
  if (first.kind == CharacterClass::space) return space_end(text, at);
  return run_end(text, begin + first.bytes, first.kind);
}

}  // namespace

std::string_view gpt2_word_at(std::string_view text, std::size_t at) {
  return text.substr(at, word_end(text, at) - at);
}

}  // namespace tj::trainer
