// In which form a command answers (-o).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "contract/result.h"

namespace CLI {
class App;
}

namespace tj {

/// Empty: for people.
using Output = std::string;  // "", "wide", "json", "yaml" or "name"

/// -o, one of `forms`, which is written "json|yaml|name". `output` must outlive the options.
void add_output_flag(CLI::App& command, Output& output, const std::string& forms);

/// "trainingjob.kubebrain.io/mnist"
std::string resource_name(const std::string& job);
/// An object as json, yaml or name; ends with a line break.
std::string formatted(const nlohmann::json& object, const Output& output);
/// The same of many: a List, or the names.
std::string formatted(const std::vector<nlohmann::json>& objects, const Output& output);

/// To standard output, at once.
void print(const std::string& text);

}  // namespace tj
