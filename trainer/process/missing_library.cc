#include "trainer/process/missing_library.h"

#include <cctype>

namespace tj::trainer {

std::optional<std::string> missing_library(std::string_view words) {
  constexpr std::string_view kNotThere =
      ": cannot open shared object file: No such file or directory";
  const auto end = words.find(kNotThere);
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  return std::string(words.substr(0, end));
}

std::string debian_package_of(std::string_view library) {
  constexpr std::string_view kEnding = ".so.";
  const auto at = library.find(kEnding);
  if (at == std::string_view::npos || at == 0) return "";
  std::string name(library.substr(0, at));
  const std::string_view version = library.substr(at + kEnding.size());
  if (version.empty()) return "";
  const bool ends_in_digit = std::isdigit(static_cast<unsigned char>(name.back())) != 0;
  name.append(ends_in_digit ? "-" : "").append(version);
  for (char& letter : name) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (letter == '_') letter = '-';
  }
  return name;
}

}  // namespace tj::trainer
