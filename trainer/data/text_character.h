// The characters of valid UTF-8, one by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tj::trainer {

struct TextCharacter {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// Of two bytes and more; `text` is valid, so that they are all there.
inline TextCharacter long_character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<std::uint8_t>(text[at + i])};
  };
  const auto more = [&](std::size_t i) { return byte(i) & 0x3f; };
  const std::uint32_t first = byte(0);
  if (first < 0xe0) return {(first & 0x1f) << 6 | more(1), 2};
  if (first < 0xf0) return {(first & 0x0f) << 12 | more(1) << 6 | more(2), 3};
  return {(first & 0x07) << 18 | more(1) << 12 | more(2) << 6 | more(3), 4};
}

/// `at` lies inside of `text`, where a character begins.
inline TextCharacter text_character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<std::uint8_t>(text[at]);
  return first < 0x80 ? TextCharacter{first, 1} : long_character_at(text, at);
}

}  // namespace tj::trainer
