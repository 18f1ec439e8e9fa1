#include "operator/api/read.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"

namespace tj::read {
namespace {

const json kNothing;
const json kEmptyObject = json::object();
const json kEmptyArray = json::array();

/// Levels of lists and objects, by the brackets outside of texts.
int level_count(std::string_view text) {
  int level = 0;
  int deepest = 0;
  bool is_in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (is_in_text && letter == '\\') {
      ++at;
    } else if (letter == '"') {
      is_in_text = !is_in_text;
    } else if (!is_in_text && (letter == '{' || letter == '[')) {
      deepest = std::max(deepest, ++level);
    } else if (!is_in_text && (letter == '}' || letter == ']')) {
      --level;
    }
  }
  return deepest;
}

json parse_valid(std::string_view text) {
  if (level_count(text) <= kLevelsMax) return json::parse(text, nullptr, false);
  const auto is_kept = [](int level, json::parse_event_t event, const json&) {
    const bool begins =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    return !begins || level < kLevelsMax;
  };
  return json::parse(text, is_kept, false);
}

}  // namespace

json parse(std::string_view text) {
  json value = parse_valid(text);
  const bool may_be_text = value.is_discarded() && valid_utf8_bytes(text) < text.size();
  return may_be_text ? parse_valid(with_invalid_utf8_replaced(text)) : value;
}

const json& value_at(const json& parent, std::string_view key) {
  if (!parent.is_object()) return kNothing;
  const auto found = parent.find(key);
  return found == parent.end() ? kNothing : *found;
}

const json& object_at(const json& parent, std::string_view key) {
  const json& value = value_at(parent, key);
  return value.is_object() ? value : kEmptyObject;
}

const json& array_at(const json& parent, std::string_view key) {
  const json& value = value_at(parent, key);
  return value.is_array() ? value : kEmptyArray;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string{};
}

std::string string_at(const json& parent, std::string_view key) {
  return text_of(value_at(parent, key));
}

std::optional<long long> whole_number_of(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const bool is_too_big =
      value.is_number_unsigned() && !std::in_range<long long>(value.get<std::uint64_t>());
  if (is_too_big) return std::nullopt;
  return value.get<long long>();
}

std::optional<double> maybe_real_at(const json& parent, std::string_view key) {
  const json& value = value_at(parent, key);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

bool bool_at(const json& parent, std::string_view key, bool fallback) {
  const json& value = value_at(parent, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::optional<TimePoint> time_at(const json& parent, std::string_view key) {
  return parse_time(string_at(parent, key));
}

}  // namespace tj::read
