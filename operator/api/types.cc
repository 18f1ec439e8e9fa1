#include "operator/api/types.h"

#include <array>
#include <utility>

namespace tj {
namespace {
constexpr std::array<std::pair<Phase, const char*>, 5> kPhases = {{{Phase::pending, "Pending"},
                                                                   {Phase::starting, "Starting"},
                                                                   {Phase::running, "Running"},
                                                                   {Phase::succeeded, "Succeeded"},
                                                                   {Phase::failed, "Failed"}}};
}  // namespace

std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

const char* to_string(Phase phase) {
  for (const auto& [value, text] : kPhases) {
    if (value == phase) return text;
  }
  return "Pending";
}

std::optional<Phase> parse_phase(const std::string& text) {
  for (const auto& [value, name] : kPhases) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace tj
