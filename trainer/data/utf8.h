// UTF-8 as far as a tokenizer needs it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tj::trainer {

/// Bytes of the valid sequence that `text` begins with; 0 when it begins with none. Surrogates,
/// overlong forms and what lies above U+10FFFF are not valid (Unicode 15, table 3-7).
std::size_t utf8_sequence_bytes(std::string_view text);

/// Bytes of the valid text that `text` begins with.
std::size_t valid_utf8_bytes(std::string_view text);

/// `text` with U+FFFD in place of each maximal invalid part, as Python's errors="replace" and web
/// browsers do it.
std::string with_invalid_utf8_replaced(std::string_view text);

/// Appends `code_point` as UTF-8; U+FFFD when it is none.
void append_utf8(std::string& text, std::uint32_t code_point);

}  // namespace tj::trainer
