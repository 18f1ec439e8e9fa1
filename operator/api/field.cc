#include "operator/api/field.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <vector>

namespace tj::field {
namespace {

using nlohmann::json;

constexpr std::size_t kShownValueCharsMax = 60;

/// The number of single-character edits from one text to the other (Levenshtein), upper and lower
/// case alike.
std::size_t edits_between(std::string_view from, std::string_view to) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(from[i - 1]) == lower(to[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

Field child(const Field& parent, const std::string& name) {
  const bool is_root = parent.path.empty();
  Field field{.value = nullptr, .path = is_root ? name : parent.path + "." + name};
  if (parent.value == nullptr || !parent.value->is_object()) return field;
  const auto found = parent.value->find(name);
  const bool is_given = found != parent.value->end() && !found->is_null();
  if (is_given) field.value = &*found;
  return field;
}

Field item(const Field& list, std::size_t index) {
  return {.value = &(*list.value)[index], .path = list.path + "[" + std::to_string(index) + "]"};
}

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_null()) return "null";
  // ASCII only, so that the cut below never splits a character.
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownValueCharsMax) text = text.substr(0, kShownValueCharsMax) + "...";
  return text;
}

std::string unknown_message(const std::string& name, Names known) {
  const auto closest = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return edits_between(name, a) < edits_between(name, b);
  });
  const std::size_t edits_max = std::max<std::size_t>(1, name.size() / 3);
  if (edits_between(name, *closest) <= edits_max) {
    return "is an unknown field; did you mean " + std::string(*closest) + "?";
  }
  std::string list;
  for (const auto field : known) list += (list.empty() ? "" : ", ") + std::string(field);
  return "is an unknown field; known here: " + list;
}

}  // namespace tj::field
