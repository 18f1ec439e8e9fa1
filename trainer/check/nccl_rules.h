// What is to be said about one variable that exists, by its value and its neighbours. Pure; called
// by lint_nccl() alone.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "trainer/check/nccl_lint.h"

namespace tj::trainer {

struct LintContext {
  const std::map<std::string, std::string, std::less<>>& variables;  // of collectives, by name
  const LintFacts& facts;

  /// Empty when it is not set.
  std::string value_of(std::string_view name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  }
};

/// Absent: nothing to say.
std::optional<Finding> judge_setting(const EnvVar& variable, const LintContext& context);

/// NCCL_IB_HCA, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME: lists of names, in their three grammars.
std::optional<Finding> judge_adapters(const EnvVar& variable, const LintContext& context);
std::optional<Finding> judge_nccl_interfaces(const EnvVar& variable, const LintContext& context);
std::optional<Finding> judge_gloo_interfaces(const EnvVar& variable, const LintContext& context);

/// A finding about `variable`.
inline Finding about(const EnvVar& variable, Severity severity, std::string advice) {
  return {.severity = severity,
          .check = kLintCheck,
          .found = variable.name + "=" + variable.value,
          .advice = std::move(advice),
          .where = {}};
}

}  // namespace tj::trainer
