// What the scanners of words share: characters with their classes, and how far a run of one goes.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "trainer/data/text_character.h"
#include "trainer/data/unicode_classes.h"

namespace tj::trainer {

struct ClassedCharacter {
  CharacterClass kind = CharacterClass::other;
  std::size_t bytes = 0;
};

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
inline constexpr auto kAsciiClasses = ascii_classes();

/// `text` is valid UTF-8, and a character begins at `at` inside of it.
inline ClassedCharacter classed_character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {kAsciiClasses[first], 1};
  const auto character = long_character_at(text, at);
  return {class_of(character.code), character.bytes};
}

/// Where the characters of `kind` end that begin at `at`.
inline std::size_t run_end(std::string_view text, std::size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const auto character = classed_character_at(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

/// The end of white space that begins at `at`: its last character belongs to what follows, if
/// anything does and it is not the only one (\s+(?!\S)|\s+).
inline std::size_t space_end(std::string_view text, std::size_t at) {
  std::size_t last = at;
  std::size_t end = at;
  while (end < text.size()) {
    const auto character = classed_character_at(text, end);
    if (character.kind != CharacterClass::space) break;
    last = end;
    end += character.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

}  // namespace tj::trainer
