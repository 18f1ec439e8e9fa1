// How manifests are printed (-o), and how a server's answer about one is told. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::submit {

enum class Format { yaml, json, name };

/// The error's subject is -o.
Result<Format> parse_format(const std::string& text);

/// yaml: documents; json: an object, or a List of several; name: a line for each, as kubectl has
/// it. All texts must be UTF-8.
std::string printed(const std::vector<nlohmann::json>& objects, Format format);

/// The message of a server that refuses a manifest names several fields in one line: here each has
/// its own.
std::string by_field(const std::string& message);

}  // namespace tj::submit
