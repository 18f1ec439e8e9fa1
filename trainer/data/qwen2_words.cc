#include "trainer/data/qwen2_words.h"

#include <cctype>

#include "trainer/data/classed_character.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kLongS = "\u017f";  // which is an s to what ignores case

bool is_line_end(char byte) { return byte == '\n' || byte == '\r'; }

/// Bytes of the contraction at `at`, where an apostrophe stands; 0: it is none.
std::size_t contraction_bytes(std::string_view text, std::size_t at) {
  const auto rest = text.substr(at + 1);
  if (rest.starts_with(kLongS)) return 1 + kLongS.size();
  const auto letter = [&](std::size_t i) {
    return i < rest.size() ? std::tolower(static_cast<unsigned char>(rest[i])) : 0;
  };
  const int first = letter(0), second = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool is_long = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                       (first == 'l' && second == 'l');
  return is_long ? 3 : 0;
}

/// White space that ends with the last end of a line in it, where there is one.
std::size_t white_end(std::string_view text, std::size_t at) {
  const auto end = run_end(text, at, CharacterClass::space);
  for (auto last = end; last > at; --last)
    if (is_line_end(text[last - 1])) return last;
  return space_end(text, at);
}

/// Marks, and the ends of lines behind them.
std::size_t marks_end(std::string_view text, std::size_t at) {
  auto end = run_end(text, at, CharacterClass::other);
  while (end < text.size() && is_line_end(text[end])) ++end;
  return end;
}

std::size_t word_end(std::string_view text, std::size_t at) {
  using enum CharacterClass;
  if (text[at] == '\'')
    if (const std::size_t bytes = contraction_bytes(text, at); bytes > 0) return at + bytes;
  const auto first = classed_character_at(text, at);
  const auto behind = at + first.bytes;
  if (first.kind == letter) return run_end(text, behind, letter);
  if (first.kind == number) return behind;
  const auto second = behind < text.size() ? classed_character_at(text, behind).kind : space;
  if (second == letter && !is_line_end(text[at])) return run_end(text, behind, letter);
  if (first.kind == other) return marks_end(text, at);
  if (text[at] == ' ' && second == other) return marks_end(text, behind);
  return white_end(text, at);
}

}  // namespace

std::string_view qwen2_word_at(std::string_view text, std::size_t at) {
  return text.substr(at, word_end(text, at) - at);
}

}  // namespace tj::trainer
