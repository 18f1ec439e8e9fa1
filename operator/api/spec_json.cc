#include "operator/api/spec_json.h"

#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;

std::optional<std::chrono::seconds> seconds_at(const json& parent, const char* key) {
  const auto count = maybe_number_at<long long>(parent, key);
  if (!count) return std::nullopt;
  return std::chrono::seconds{*count};
}

CleanPods clean_pods_from(const std::string& text) {
  if (text == "All") return CleanPods::all;
  return text == "None" ? CleanPods::none : CleanPods::running;
}

RunPolicy run_policy_from_json(const json& object) {
  RunPolicy policy{.suspend = bool_at(object, "suspend"),
                   .active_deadline = seconds_at(object, "activeDeadlineSeconds"),
                   .start_deadline = seconds_at(object, "startDeadlineSeconds"),
                   .ttl_after_finished = seconds_at(object, "ttlSecondsAfterFinished"),
                   .restart_budget_reset = seconds_at(object, "restartBudgetResetSeconds"),
                   .resets_budget_on_progress = true,
                   .heartbeat_timeout = seconds_at(object, "heartbeatTimeoutSeconds"),
                   .clean_pods = clean_pods_from(string_at(object, "cleanPodPolicy")),
                   .max_restarts = 0,
                   .managed_by = string_at(object, "managedBy")};
  const json& on_progress = object.value("restartBudgetResetOnProgress", json(true));
  policy.resets_budget_on_progress = !on_progress.is_boolean() || on_progress.get<bool>();
  policy.max_restarts = number_at(object, "maxRestarts", RunPolicy{}.max_restarts);
  return policy;
}

std::vector<int> numbers_at(const json& parent, const char* key) {
  std::vector<int> numbers;
  for (const json& item : array_at(parent, key)) {
    if (item.is_number_integer()) numbers.push_back(item.get<int>());
  }
  return numbers;
}

FailureRule rule_from_json(const json& object) {
  FailureRule rule{
      .action = parse_action(string_at(object, "action")).value_or(FailureAction::restart),
      .exit_codes = numbers_at(object, "exitCodes"),
      .signals = numbers_at(object, "signals"),
      .conditions = {},
      .causes = {}};
  for (const json& item : array_at(object, "conditions")) {
    if (item.is_string()) rule.conditions.push_back(item.get<std::string>());
  }
  for (const json& item : array_at(object, "causes")) {
    const auto cause = item.is_string() ? parse_cause(item.get<std::string>()) : std::nullopt;
    if (cause) rule.causes.push_back(*cause);
  }
  return rule;
}

NodeLoss node_loss_from_json(const json& object) {
  const NodeLoss usual;
  return {.tolerance = seconds_at(object, "toleranceSeconds").value_or(usual.tolerance),
          .force_delete = seconds_at(object, "forceDeleteSeconds").value_or(usual.force_delete)};
}

}  // namespace

JobSpec spec_from_json(const json& spec) {
  const json& worker = object_at(object_at(spec, "replicaSpecs"), "Worker");
  JobSpec result{.worker_count = number_at(worker, "replicas", 1),
                 .pod_template_json = object_at(worker, "template").dump(),
                 .run = run_policy_from_json(object_at(spec, "runPolicy")),
                 .failure_rules = {},
                 .success = string_at(spec, "successPolicy") == "Worker0"
                                ? SuccessPolicy::worker0
                                : SuccessPolicy::all_workers,
                 .node_loss = node_loss_from_json(object_at(spec, "nodeLoss")),
                 .master_port = number_at(spec, "masterPort", names::kMasterPortDefault),
                 .nproc_per_node = maybe_number_at(spec, "nprocPerNode"),
                 .network_policy = bool_at(object_at(spec, "network"), "networkPolicy")};
  for (const json& rule : array_at(object_at(spec, "failurePolicy"), "rules")) {
    result.failure_rules.push_back(rule_from_json(rule));
  }
  return result;
}

}  // namespace tj
