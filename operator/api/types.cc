#include "operator/api/types.h"

#include <algorithm>

#include "operator/api/words.h"

namespace tj {
std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

const char* to_string(Phase phase) { return text_of(phase); }
const char* to_string(FailureAction action) { return text_of(action); }
const char* to_string(FailureCause cause) { return text_of(cause); }
std::optional<Phase> parse_phase(const std::string& text) { return value_of<Phase>(text); }
std::optional<FailureAction> parse_action(const std::string& text) {
  return value_of<FailureAction>(text);
}
std::optional<FailureCause> parse_cause(const std::string& text) {
  return value_of<FailureCause>(text);
}

std::optional<int> percent_of(const JobProgress& progress) {
  if (progress.total_steps <= 0) return std::nullopt;
  const long double part = static_cast<long double>(progress.step) / progress.total_steps;
  return static_cast<int>(std::clamp(part, 0.0L, 1.0L) * 100);
}

std::string to_text(const JobProgress& progress) {
  const auto percent = percent_of(progress);
  if (!percent) return std::to_string(progress.step);
  return std::to_string(progress.step) + "/" + std::to_string(progress.total_steps) + " (" +
         std::to_string(*percent) + "%)";
}

}  // namespace tj
