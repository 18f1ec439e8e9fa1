#include "operator/api/validate_policy.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace tj {
namespace {

using field::Bounds;
using field::child;
using field::Field;
using field::FieldChecker;
using field::item;

constexpr long long kYearSeconds = 31'536'000;
constexpr long long kDaySeconds = 86'400;

constexpr Bounds kDeadlineSeconds{.min = 1, .max = kYearSeconds};
constexpr Bounds kHeartbeatSeconds{.min = 10, .max = kDaySeconds};
constexpr Bounds kTtlSeconds{.min = 0, .max = kYearSeconds};
constexpr Bounds kNodeSeconds{.min = 0, .max = kDaySeconds};
constexpr Bounds kRestarts{.min = 0, .max = 1000};
constexpr Bounds kManagedByChars{.min = 1, .max = 63};
constexpr Bounds kRules{.min = 0, .max = 32};
constexpr Bounds kMatchers{.min = 1, .max = 64};
constexpr Bounds kExitCodes{.min = 1, .max = 255};
constexpr Bounds kSignals{.min = 1, .max = 64};
constexpr Bounds kConditionChars{.min = 1, .max = 316};  // as the type of a metav1.Condition
constexpr Bounds kPorts{.min = 1, .max = 65535};
constexpr Bounds kProcesses{.min = 1, .max = 1024};

constexpr std::string_view kRunPolicyFields[] = {"suspend",
                                                 "activeDeadlineSeconds",
                                                 "startDeadlineSeconds",
                                                 "ttlSecondsAfterFinished",
                                                 "cleanPodPolicy",
                                                 "maxRestarts",
                                                 "restartBudgetResetSeconds",
                                                 "restartBudgetResetOnProgress",
                                                 "heartbeatTimeoutSeconds",
                                                 "restartScope",
                                                 "managedBy"};
constexpr std::string_view kFailurePolicyFields[] = {"rules"};
constexpr std::string_view kRuleFields[] = {"action", "exitCodes", "signals", "conditions",
                                            "causes"};
constexpr std::string_view kNodeLossFields[] = {"toleranceSeconds", "forceDeleteSeconds"};
constexpr std::string_view kNetworkFields[] = {"networkPolicy"};

constexpr std::string_view kCleanPodPolicies[] = {"Running", "All", "None"};
constexpr std::string_view kRestartScopes[] = {"Gang"};
constexpr std::string_view kActions[] = {"Restart", "RestartIgnoringBudget", "Fail",
                                         "ExcludeNodeAndRestart"};
// Exit codes and signals have lists of their own.
constexpr std::string_view kCauses[] = {"OOMKilled",   "Disrupted",     "NodeLost", "PodDeleted",
                                        "PodRejected", "StartDeadline", "Hung"};
constexpr std::string_view kSuccessPolicies[] = {"AllWorkers", "Worker0"};

void check_run_policy(FieldChecker& checker, const Field& policy) {
  if (!checker.check_object(policy, "deadlines, restarts and clean-up")) return;
  checker.check_known_fields(policy, kRunPolicyFields);
  checker.check_boolean(child(policy, "suspend"));
  checker.check_whole_number(child(policy, "activeDeadlineSeconds"), kDeadlineSeconds);
  checker.check_whole_number(child(policy, "startDeadlineSeconds"), kDeadlineSeconds);
  checker.check_whole_number(child(policy, "ttlSecondsAfterFinished"), kTtlSeconds);
  checker.check_choice(child(policy, "cleanPodPolicy"), kCleanPodPolicies);
  checker.check_whole_number(child(policy, "maxRestarts"), kRestarts);
  checker.check_whole_number(child(policy, "restartBudgetResetSeconds"), kDeadlineSeconds);
  checker.check_boolean(child(policy, "restartBudgetResetOnProgress"));
  checker.check_whole_number(child(policy, "heartbeatTimeoutSeconds"), kHeartbeatSeconds);
  checker.check_choice(child(policy, "restartScope"), kRestartScopes);
  checker.check_text(child(policy, "managedBy"), kManagedByChars);
}

/// Calls `check(entry)` for each entry of a list of matchers. True if there is one at all.
template <typename Check>
bool check_matchers(FieldChecker& checker, const Field& list, const char* meaning, Check check) {
  if (!checker.check_list(list, kMatchers, meaning)) return list.value != nullptr;
  for (std::size_t i = 0; i < list.value->size(); ++i) check(item(list, i));
  return true;
}

void check_rule(FieldChecker& checker, const Field& rule) {
  if (!checker.require_object(rule, "an action, and when it is taken")) return;
  checker.check_known_fields(rule, kRuleFields);
  checker.require_choice(child(rule, "action"), kActions);
  bool has_matcher = false;
  has_matcher |=
      check_matchers(checker, child(rule, "exitCodes"), "exit codes",
                     [&](const Field& code) { checker.check_whole_number(code, kExitCodes); });
  has_matcher |=
      check_matchers(checker, child(rule, "signals"), "numbers of signals",
                     [&](const Field& signal) { checker.check_whole_number(signal, kSignals); });
  has_matcher |= check_matchers(
      checker, child(rule, "conditions"), "types or reasons of pod conditions",
      [&](const Field& condition) { checker.check_text(condition, kConditionChars); });
  has_matcher |= check_matchers(checker, child(rule, "causes"), "causes", [&](const Field& cause) {
    checker.require_choice(cause, kCauses);
  });
  if (!has_matcher) {
    checker.add(rule,
                "matches nothing; it must say when: by exitCodes, signals, conditions or causes");
  }
}

void check_failure_policy(FieldChecker& checker, const Field& policy) {
  if (!checker.check_object(policy, "rules")) return;
  checker.check_known_fields(policy, kFailurePolicyFields);
  const Field rules = child(policy, "rules");
  if (!checker.check_list(rules, kRules, "rules")) return;
  for (std::size_t i = 0; i < rules.value->size(); ++i) check_rule(checker, item(rules, i));
}

void check_node_loss(FieldChecker& checker, const Field& node_loss) {
  if (!checker.check_object(node_loss, "toleranceSeconds and forceDeleteSeconds")) return;
  checker.check_known_fields(node_loss, kNodeLossFields);
  checker.check_whole_number(child(node_loss, "toleranceSeconds"), kNodeSeconds);
  checker.check_whole_number(child(node_loss, "forceDeleteSeconds"), kNodeSeconds);
}

void check_network(FieldChecker& checker, const Field& network) {
  if (!checker.check_object(network, "networkPolicy")) return;
  checker.check_known_fields(network, kNetworkFields);
  checker.check_boolean(child(network, "networkPolicy"));
}

}  // namespace

void check_policy(FieldChecker& checker, const Field& spec) {
  check_run_policy(checker, child(spec, "runPolicy"));
  check_failure_policy(checker, child(spec, "failurePolicy"));
  checker.check_choice(child(spec, "successPolicy"), kSuccessPolicies);
  check_node_loss(checker, child(spec, "nodeLoss"));
  checker.check_whole_number(child(spec, "masterPort"), kPorts);
  checker.check_whole_number(child(spec, "nprocPerNode"), kProcesses);
  check_network(checker, child(spec, "network"));
}

}  // namespace tj
