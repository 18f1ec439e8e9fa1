#include "trainer/values/json_text.h"

namespace tj::trainer {

bool is_nested_too_deep(std::string_view text) {
  int depth = 0;
  bool is_in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (is_in_text && byte == '\\')
      ++at;  // what is escaped
    else if (byte == '"')
      is_in_text = !is_in_text;
    else if (!is_in_text && (byte == '[' || byte == '{') && ++depth > kJsonDepthMax)
      return true;
    else if (!is_in_text && (byte == ']' || byte == '}'))
      --depth;
  }
  return false;
}

}  // namespace tj::trainer
