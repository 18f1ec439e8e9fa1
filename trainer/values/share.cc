#include "trainer/values/share.h"

#include <cctype>
#include <cstdlib>

namespace tj::trainer {

std::optional<double> share_from(std::string text) {
  const bool is_percent = !text.empty() && text.back() == '%';
  if (is_percent) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) / (is_percent ? 100 : 1);
  const bool is_whole = !text.empty() && *end == '\0' && std::isdigit(text.front()) != 0;
  if (!is_whole || !(value >= 0 && value <= 1)) return std::nullopt;
  return value;
}

}  // namespace tj::trainer
