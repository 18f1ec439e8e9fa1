// How values look in a log line: key=value, quoted where a value may hold blanks.
#pragma once
#include <string>
#include <string_view>

namespace tj {

inline constexpr std::size_t kLogValueMax = 500;  // a validation message can hold a whole template

/// `text` in double quotes, on one line, at most kLogValueMax characters of it.
inline std::string log_value(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text.substr(0, kLogValueMax)) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  if (text.size() > kLogValueMax) out += "...";
  return out + '"';
}

}  // namespace tj
