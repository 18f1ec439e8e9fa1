#include "trainer/values/glob.h"

#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tj::trainer {
namespace {
constexpr std::size_t kNearMax = 3;
}

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::size_t glob_distance(std::string_view pattern, std::string_view name) {
  // row[j]: of the pattern so far to the first j characters of the name.
  std::vector<std::size_t> row(name.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char wanted : pattern) {
    const bool is_any = wanted == '*';
    std::size_t diagonal = std::exchange(row[0], is_any ? row[0] : row[0] + 1);
    for (std::size_t j = 1; j <= name.size(); ++j) {
      if (is_any) {
        row[j] = std::min(row[j], row[j - 1]);
        continue;
      }
      const bool is_same = wanted == name[j - 1] || wanted == '?';
      const std::size_t replaced = diagonal + (is_same ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

std::vector<std::string> nearest_names(std::string_view pattern,
                                       std::span<const std::string> names) {
  std::vector<std::pair<std::size_t, const std::string*>> by_distance;
  const std::string without_front = "*" + std::string(pattern);
  for (const auto& name : names)
    by_distance.emplace_back(
        std::min(glob_distance(pattern, name), 1 + glob_distance(without_front, name)), &name);
  std::ranges::stable_sort(by_distance, {}, &decltype(by_distance)::value_type::first);
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : by_distance)
    if (nearest.size() < kNearMax) nearest.push_back(*name);
  return nearest;
}

std::string one_of_text(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

}  // namespace tj::trainer
