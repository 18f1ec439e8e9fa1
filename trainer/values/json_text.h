// JSON of files that others wrote. nlohmann parses without recursion, but copies, compares and
// writes with it: a document of some 100,000 brackets would end the process there.
#pragma once
#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "trainer/values/json_integer.h"

namespace tj::trainer {

inline constexpr int kJsonDepthMax = 64;  // configurations and tokenizers have fewer than 10

/// Whether arrays and objects are nested deeper than that.
bool is_nested_too_deep(std::string_view text);

/// Discarded: it is no JSON, or nested too deep.
template <typename Json = nlohmann::json>
Json json_of(std::string_view text) {
  if (is_nested_too_deep(text)) return Json(nlohmann::json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// What nlohmann says is wrong, without its own number for that.
inline std::string json_words(const nlohmann::json::exception& failure) {
  const std::string words = failure.what();
  const auto end = words.find("] ");
  const bool is_numbered = words.starts_with("[json.exception.") && end != words.npos;
  return is_numbered ? words.substr(end + 2) : words;
}

/// A text, a number or a bool that stands at `key`. Throws json::exception, which names the key,
/// where it is of another type, or an integer that T does not hold.
template <typename T, typename Json>
T json_value(const Json& value, const std::string& key) try {
  if constexpr (std::integral<T> && !std::same_as<T, bool>)
    return integer_of<T>(value);
  else
    return value.template get<T>();
} catch (const nlohmann::json::exception& failure) {
  throw Json::type_error::create(302, key + ": " + json_words(failure), &value);
}

}  // namespace tj::trainer
