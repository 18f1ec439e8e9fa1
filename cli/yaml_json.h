// YAML text as JSON, with the scalar rules of YAML 1.2's core schema (yaml.org/spec/1.2.2, 10.3):
// `yes` and `012` are a text and a number, not a boolean and an octal. What is no YAML is told with
// line and column.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

inline constexpr int kYamlNodesMax =
    200'000;  // aliases may multiply a small file beyond any memory

/// All documents of `text`, empty ones left out. The error's subject is `source`:line:column.
Result<std::vector<nlohmann::json>> parse_yaml(const std::string& text, const std::string& source);

}  // namespace tj
