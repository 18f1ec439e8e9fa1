// Reading JSON that somebody else wrote, a server or a user: what is absent, null, of another type
// or out of range reads as empty. Never throws. Strictness is validate.h's work.
#pragma once
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "contract/json_integer.h"
#include "operator/api/types.h"

namespace tj::read {

using nlohmann::json;

/// Beyond what an API server takes (10,000 levels), and what a recursion over it needs is bounded.
inline constexpr int kLevelsMax = 1'000;

/// A JSON text; a discarded value when it is none. What is not UTF-8 in it reads as U+FFFD, what
/// lies deeper than kLevelsMax is left out.
json parse(std::string_view text);

/// `text` without the list managedFields that stands inside of `level` objects: who has written
/// which field is half of a pod's text, and nobody here reads it.
std::string without_managed_fields(std::string text, int level);

/// The entry, of whatever type; null where there is none. What these return lives as long as
/// `parent`, or for ever.
const json& value_at(const json& parent, std::string_view key);
const json& object_at(const json& parent, std::string_view key);
const json& array_at(const json& parent, std::string_view key);

/// The text of a value; "" if it is none.
std::string text_of(const json& value);
std::string string_at(const json& parent, std::string_view key);

/// Absent as well where the number does not fit into the type.
template <typename Number = int>
std::optional<Number> maybe_number_at(const json& parent, std::string_view key) {
  return json_integer<Number>(value_at(parent, key));
}
template <typename Number = int>
Number number_at(const json& parent, std::string_view key, Number fallback = 0) {
  return maybe_number_at<Number>(parent, key).value_or(fallback);
}

std::optional<double> maybe_real_at(const json& parent, std::string_view key);
bool bool_at(const json& parent, std::string_view key, bool fallback = false);
std::optional<TimePoint> time_at(const json& parent, std::string_view key);

/// How long the metav1.Status of an answer asks to wait.
std::optional<std::chrono::seconds> retry_after_of(const json& status);

}  // namespace tj::read
