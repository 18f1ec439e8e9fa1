// The policies of a spec, field by field. Each is named once, here, with what it may be: from this
// list it is read (spec_json.cc) and checked (validate_policy.cc), and tests/crd compares it with
// the CRD. What it is when it is left out is said by its member in types.h, the words of a choice
// by words.h.
#pragma once
#include <concepts>
#include <string_view>
#include <vector>

#include "operator/api/field_checker.h"
#include "operator/api/types.h"
#include "operator/api/words.h"

namespace tj::field {

/// A list: how many entries it may have, what they are in the plural, and what each may be.
template <typename Limits>
struct List {
  Bounds sizes;
  const char* meaning;
  Limits each;
};
struct Objects {};   // each entry has fields of its own
struct Required {};  // it can't be left out

inline constexpr long long kDaySeconds = 86'400;
inline constexpr long long kYearSeconds = 31'536'000;
inline constexpr Bounds kWorkers{.min = 1, .max = 10'000};
inline constexpr Bounds kDeadlineSeconds{.min = 1, .max = kYearSeconds};
inline constexpr Bounds kNodeSeconds{.min = 0, .max = kDaySeconds};
inline constexpr Bounds kMatchers{.min = 1, .max = 64};
inline constexpr Bounds kExitCode{.min = 1, .max = 255};
inline constexpr Bounds kSignal{.min = 1, .max = 64};
inline constexpr Bounds kConditionChars{.min = 1, .max = 316};  // as a metav1.Condition's type

/// Calls visit(name, member, what it may be...) for each field, in the order of the CRD. A member
/// that is absent when its field is left out is an optional.
template <typename Visit>
void visit_fields(RunPolicy& policy, Visit&& visit) {
  visit("suspend", policy.suspend);
  visit("activeDeadlineSeconds", policy.active_deadline, kDeadlineSeconds);
  visit("startDeadlineSeconds", policy.start_deadline, kDeadlineSeconds);
  visit("ttlSecondsAfterFinished", policy.ttl_after_finished,
        Bounds{.min = 0, .max = kYearSeconds});
  visit("cleanPodPolicy", policy.clean_pods);
  visit("maxRestarts", policy.max_restarts, Bounds{.min = 0, .max = 1000});
  visit("restartBackoffSeconds", policy.restart_backoff, Bounds{.min = 0, .max = 300});
  visit("restartBudgetResetSeconds", policy.restart_budget_reset, kDeadlineSeconds);
  visit("restartBudgetResetOnProgress", policy.resets_budget_on_progress);
  visit("heartbeatTimeoutSeconds", policy.heartbeat_timeout, Bounds{.min = 10, .max = kDaySeconds});
  visit("restartScope", policy.restart_scope);
  visit("managedBy", policy.managed_by, Bounds{.min = 1, .max = 63});
}

template <typename Visit>
void visit_fields(FailureRule& rule, Visit&& visit) {
  visit("action", rule.action, Required{});
  visit("exitCodes", rule.exit_codes, List<Bounds>{kMatchers, "exit codes", kExitCode});
  visit("signals", rule.signals, List<Bounds>{kMatchers, "numbers of signals", kSignal});
  visit("conditions", rule.conditions,
        List<Bounds>{kMatchers, "types or reasons of pod conditions", kConditionChars});
  visit("causes", rule.causes, List<Names>{kMatchers, "causes", kRuleCauses});
}

template <typename Visit>
void visit_fields(FailurePolicy& policy, Visit&& visit) {
  visit("rules", policy.rules, List<Objects>{{.min = 0, .max = 32}, "rules", {}});
}

template <typename Visit>
void visit_fields(NodeLoss& node_loss, Visit&& visit) {
  visit("toleranceSeconds", node_loss.tolerance, kNodeSeconds);
  visit("forceDeleteSeconds", node_loss.force_delete, Bounds{.min = -1, .max = kDaySeconds});
  visit("excludeSeconds", node_loss.exclude, kDeadlineSeconds);
}

template <typename Visit>
void visit_fields(Network& network, Visit&& visit) {
  visit("networkPolicy", network.network_policy);
}

/// All but replicaSpecs. An object comes with what it stands for.
template <typename Visit>
void visit_fields(JobSpec& spec, Visit&& visit) {
  visit("runPolicy", spec.run, "deadlines, restarts and clean-up");
  visit("failurePolicy", spec.failure, "rules");
  visit("successPolicy", spec.success);
  visit("nodeLoss", spec.node_loss, "when a silent node is given up");
  visit("masterPort", spec.master_port, Bounds{.min = 1, .max = 65535});
  visit("nprocPerNode", spec.nproc_per_node, Bounds{.min = 1, .max = 1024});
  visit("network", spec.network, "networkPolicy");
}

template <typename Value>
concept Choice = std::is_enum_v<Value>;

template <typename Value>
concept WholeNumber = std::same_as<Value, int> || std::same_as<Value, std::chrono::seconds> ||
    std::same_as<Value, std::optional<int>> ||
    std::same_as<Value, std::optional<std::chrono::seconds>>;

/// The names of the fields of `Object`.
template <typename Object>
const std::vector<std::string_view>& field_names() {
  static const auto kNames = [] {
    std::vector<std::string_view> names;
    Object object;
    visit_fields(object, [&](const char* name, const auto&...) { names.emplace_back(name); });
    return names;
  }();
  return kNames;
}

}  // namespace tj::field
