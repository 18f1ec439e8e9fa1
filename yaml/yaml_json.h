// YAML text as JSON, with the scalar rules by which kubectl reads it, those of YAML 1.1: `yes` is
// true and `012` is ten (sigs.k8s.io/yaml, goyaml.v2/resolve.go; seen in tests/crd). A manifest
// must mean the same here and in a cluster. What is no YAML is told with line and column.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

inline constexpr int kYamlDocumentsMax = 1'000;  // in one file
inline constexpr int kYamlNodesMax =
    200'000;                                // aliases may multiply a small file beyond any memory
inline constexpr int kYamlLevelsMax = 200;  // by an alias a list may hold itself, without end

/// All documents of `text`, empty ones left out. The error's subject is `source`:line:column.
Result<std::vector<nlohmann::json>> parse_yaml(const std::string& text, const std::string& source);

/// Without quotes it is this text, and no number, truth value or null.
bool reads_as_text(const std::string& plain);

}  // namespace tj
