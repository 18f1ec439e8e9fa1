#include "operator/api/read.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace tj::read {
namespace {

const json kNothing;
const json kEmptyObject = json::object();
const json kEmptyArray = json::array();

}  // namespace

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
