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

/// Walks through JSON by the brackets outside of texts.
class LevelScan {
 public:
  explicit LevelScan(std::string_view text) : text_(text) {}

  /// Up to `end`, or until the level falls to `level_min`; how far that was.
  std::size_t go(std::size_t end, int level_min = -1) {
    bool is_in_text = false;
    for (; at_ < std::min(end, text_.size()); ++at_) {
      const char letter = text_[at_];
      if (is_in_text && letter == '\\') {
        ++at_;
      } else if (letter == '"') {
        is_in_text = !is_in_text;
      } else if (!is_in_text && (letter == '{' || letter == '[')) {
        deepest_ = std::max(deepest_, ++level_);
      } else if (!is_in_text && (letter == '}' || letter == ']')) {
        if (--level_ <= level_min) return ++at_;
      }
    }
    return at_;
  }
  int level() const { return level_; }
  int deepest() const { return deepest_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int level_ = 0;
  int deepest_ = 0;
};

int level_count(std::string_view text) {
  LevelScan scan(text);
  scan.go(text.size());
  return scan.deepest();
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

std::string without_managed_fields(std::string text, int level) {
  constexpr std::string_view kKey = "\"managedFields\":[";
  const std::size_t key = text.find(kKey);
  if (key == std::string::npos || key == 0) return text;
  LevelScan scan(text);
  const bool is_it = scan.go(key) == key && scan.level() == level;
  if (!is_it) return text;
  const std::size_t end = scan.go(text.size(), level);
  if (scan.level() != level || end >= text.size()) return text;
  const bool has_next = text[end] == ',';
  const std::size_t begin = !has_next && text[key - 1] == ',' ? key - 1 : key;
  return text.erase(begin, end + (has_next ? 1 : 0) - begin);
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

std::optional<std::chrono::seconds> retry_after_of(const json& status) {
  // Unsigned: a time that has passed is none.
  const auto wait =
      maybe_number_at<std::uint32_t>(object_at(status, "details"), "retryAfterSeconds");
  if (!wait) return std::nullopt;
  return std::chrono::seconds(*wait);
}

}  // namespace tj::read
