#include "cli/plain_text.h"

#include <algorithm>

#include "contract/utf8.h"

namespace tj {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::size_t kColourBytesMax = 32;

/// The bytes of the sequence for a colour that `text` begins with; 0: it begins with none.
std::size_t colour_bytes(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  for (std::size_t at = 2; at < std::min(text.size(), kColourBytesMax); ++at) {
    if (text[at] == 'm') return at + 1;
    const bool goes_on = (text[at] >= '0' && text[at] <= '9') || text[at] == ';';
    if (!goes_on) return 0;
  }
  return 0;
}

/// C0 and DEL are one byte, C1 (U+0080 to U+009F) two; what turns the direction of writing (U+202A
/// to U+202E, U+2066 to U+2069) three.
bool is_harmful(std::string_view character) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(character[at]); };
  if (character.size() == 1) return (byte(0) < 0x20 && byte(0) != '\t') || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const bool is_embedding = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;
  const bool is_isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return is_embedding || is_isolate;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte >= 0x20 && byte < 0x7f) || byte == '\t';
  });
}

}  // namespace

std::string without_controls(std::string_view text, bool with_colours) {
  if (is_plain(text)) return std::string(text);
  const std::string valid = with_invalid_utf8_replaced(text);
  std::string plain;
  plain.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    const std::size_t colour = with_colours ? colour_bytes(rest) : 0;
    const std::size_t taken =
        colour > 0 ? colour : std::max<std::size_t>(utf8_sequence_bytes(rest), 1);
    const std::string_view part = rest.substr(0, taken);
    plain += colour == 0 && is_harmful(part) ? kReplacement : part;
    rest.remove_prefix(taken);
  }
  return plain;
}

std::string plain_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char letter) { return letter == '\n' || letter == '\t'; }, ' ');
  std::string plain = without_controls(line);
  while (plain.ends_with(' ')) plain.pop_back();
  return plain;
}

}  // namespace tj
