// JSON of files that others wrote. nlohmann parses without recursion, but copies, compares and
// writes with it: a document of some 100,000 brackets would end the process there.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

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

}  // namespace tj::trainer
