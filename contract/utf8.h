// UTF-8: what other programs hand over (a log, a path, a reply) is made valid where it enters, for
// JSON takes nothing else. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tj {

/// Bytes of the valid sequence that `text` begins with; 0 when it begins with none. Surrogates,
/// overlong forms and what lies above U+10FFFF are not valid (Unicode 15, table 3-7).
std::size_t utf8_sequence_bytes(std::string_view text);

/// Bytes of the valid text that `text` begins with.
std::size_t valid_utf8_bytes(std::string_view text);

/// `text` with U+FFFD in place of each maximal invalid part, as Python's errors="replace" and web
/// browsers do it.
std::string with_invalid_utf8_replaced(std::string_view text);

/// A byte that only goes on with a character: 10xxxxxx.
constexpr bool is_utf8_continuation(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xc0) == 0x80;
}

/// The longest part of valid UTF-8 at the begin, or at the end, of `text` that has at most
/// `bytes_max` bytes and cuts no character.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);
std::string_view utf8_suffix(std::string_view text, std::size_t bytes_max);

/// Appends `code_point` as UTF-8; U+FFFD when it is none.
void append_utf8(std::string& text, std::uint32_t code_point);

}  // namespace tj
