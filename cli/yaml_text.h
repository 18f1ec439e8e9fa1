// JSON as YAML of the kind that a person writes: fields in the order of the examples, what is short
// in one line, scripts as blocks. parse_yaml() reads the same JSON from it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tj {

/// Ends with a line break. All texts in `value` must be UTF-8.
std::string yaml_text(const nlohmann::json& value);

}  // namespace tj
