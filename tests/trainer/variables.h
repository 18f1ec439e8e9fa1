// Variables that a test sets for what reads an environment.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "contract/launch_env.h"

namespace tj::trainer {

using Variables = std::map<std::string, std::string, std::less<>>;

/// `variables` outlive what it returns.
inline EnvLookup lookup_in(const Variables& variables) {
  return [&variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace tj::trainer
