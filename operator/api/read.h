// Reading JSON that a server sent: what is absent, null or of another type reads as empty.
// Strictness is validate.h's work. Read by the .cc files of this folder alone.
#pragma once
#include <nlohmann/json.hpp>  // lint-ok(include): read by the .cc files of this folder alone
#include <optional>
#include <string>

#include "operator/api/types.h"

namespace tj::read {

using nlohmann::json;

inline const json kEmptyObject = json::object();
inline const json kEmptyArray = json::array();

inline const json& object_at(const json& parent, const char* key) {
  if (!parent.is_object()) return kEmptyObject;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object() ? *found : kEmptyObject;
}

inline const json& array_at(const json& parent, const char* key) {
  if (!parent.is_object()) return kEmptyArray;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_array() ? *found : kEmptyArray;
}

inline std::string string_at(const json& parent, const char* key) {
  if (!parent.is_object()) return {};
  const auto found = parent.find(key);
  return found != parent.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

template <typename Number = int>
std::optional<Number> maybe_number_at(const json& parent, const char* key) {
  if (!parent.is_object()) return std::nullopt;
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<Number>();
}

template <typename Number = int>
Number number_at(const json& parent, const char* key, Number fallback = 0) {
  return maybe_number_at<Number>(parent, key).value_or(fallback);
}

inline std::optional<double> maybe_real_at(const json& parent, const char* key) {
  if (!parent.is_object()) return std::nullopt;
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

inline bool bool_at(const json& parent, const char* key) {
  if (!parent.is_object()) return false;
  const auto found = parent.find(key);
  return found != parent.end() && found->is_boolean() && found->get<bool>();
}

inline std::optional<TimePoint> time_at(const json& parent, const char* key) {
  return parse_time(string_at(parent, key));
}

}  // namespace tj::read
