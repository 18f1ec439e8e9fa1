#include "trainer/values/settings.h"

#include <algorithm>
#include <cstdio>

namespace tj::trainer {
namespace {
std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()) + 2, ' ');
}
}  // namespace

std::string render_settings(std::span<const Setting> settings) {
  const Setting heading{.name = "setting", .value = "value", .origin = "from"};
  std::size_t name_width = heading.name.size();
  std::size_t value_width = heading.value.size();
  constexpr std::size_t kValueWidthMax = 40;  // a long path should not push its neighbours away
  for (const auto& setting : settings) {
    name_width = std::max(name_width, setting.name.size());
    value_width = std::max(value_width, std::min(kValueWidthMax, setting.value.size()));
  }
  const auto line = [&](const Setting& setting) {
    return padded(setting.name, name_width) + padded(setting.value, value_width) + setting.origin +
           "\n";
  };
  std::string table = line(heading);
  for (const auto& setting : settings) table += line(setting);
  return table;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t digits_begin = value < 0 ? 1 : 0;
  for (auto at = text.size(); at > digits_begin + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace tj::trainer
