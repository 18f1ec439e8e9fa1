#include "trainer/check/nccl_lint.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "trainer/check/nccl_names.h"
#include "trainer/check/nccl_rules.h"
#include "trainer/network/network_facts.h"

extern char** environ;

namespace tj::trainer {
namespace {

bool names_a_timeout(const EnvVar& variable) {
  return variable.name.find("TIMEOUT") != std::string::npos;
}

Finding unknown_name(const EnvVar& variable) {
  Finding finding{.severity = Severity::warn,
                  .check = kLintCheck,
                  .found = variable.name + "=" + variable.value,
                  .advice = "nothing reads it, so it has no effect; "};
  if (names_a_timeout(variable)) {
    finding.advice +=
        "how long a rank may stand still is said by --limit, how long ranks wait for each other by "
        "--rendezvous-timeout-seconds (trainer train)";
    return finding;
  }
  const std::string_view nearest = nearest_name(variable.name);
  finding.advice += nearest.empty() ? "it can go" : "is " + std::string(nearest) + " meant?";
  return finding;
}

std::optional<Finding> judge(const EnvVar& variable, const LintContext& context) {
  switch (kind_of_name(variable.name)) {
    case NameKind::known: return judge_setting(variable, context);
    case NameKind::unknown: return unknown_name(variable);
    case NameKind::foreign: return std::nullopt;
    case NameKind::later: break;
  }
  return Finding{.severity = Severity::pass,
                 .check = kLintCheck,
                 .found = variable.name + "=" + variable.value,
                 .advice = "only a later NCCL than 2.28 reads it"};
}

}  // namespace

std::vector<Finding> lint_nccl(std::span<const EnvVar> variables, const LintFacts& facts) {
  std::map<std::string, std::string, std::less<>> by_name;
  for (const EnvVar& variable : variables) {
    if (is_collective_variable(variable.name)) by_name[variable.name] = variable.value;
  }
  const LintContext context{by_name, facts};
  std::vector<Finding> findings;
  for (const auto& [name, value] : by_name) {
    if (auto finding = judge({name, value}, context)) findings.push_back(*std::move(finding));
  }
  return findings;
}

std::vector<std::string> lint_lines(std::span<const EnvVar> variables, const LintFacts& facts) {
  std::vector<std::string> lines;
  for (const Finding& finding : lint_nccl(variables, facts)) {
    if (finding.severity >= Severity::warn)
      lines.push_back("trainer: " + finding.found + ": " + finding.advice);
  }
  return lines;
}

std::vector<std::string> timeout_lines(std::span<const EnvVar> variables) {
  std::vector<EnvVar> unread;
  std::ranges::copy_if(variables, std::back_inserter(unread), [](const EnvVar& variable) {
    return names_a_timeout(variable) && kind_of_name(variable.name) == NameKind::unknown;
  });
  return lint_lines(unread, {});
}

std::vector<EnvVar> process_variables() {
  std::vector<EnvVar> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos)
      variables.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return variables;
}

LintFacts lint_facts() {
  std::set<std::string> names;
  for (const auto& [address, name] : interfaces_by_address()) names.insert(name);
  return {.ports = hca_ports(), .interfaces = {names.begin(), names.end()}};
}

}  // namespace tj::trainer
