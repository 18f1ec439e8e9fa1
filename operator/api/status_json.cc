#include "operator/api/status_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/outcome.h"
#include "operator/api/policy_fields.h"
#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;

json time_or_null(const std::optional<TimePoint>& time) {
  return time ? json(format_time(*time)) : json(nullptr);
}

Condition condition_from_json(const json& object) {
  return {.type = string_at(object, "type"),
          .status = string_at(object, "status") == "True",
          .reason = string_at(object, "reason"),
          .message = string_at(object, "message"),
          .observed_generation = number_at<long long>(object, "observedGeneration"),
          .last_transition_time = time_at(object, "lastTransitionTime")};
}

json to_json(const Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.status ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {"observedGeneration", condition.observed_generation},
          {"lastTransitionTime", time_or_null(condition.last_transition_time)}};
}

/// A status is not only ours to write: what it counts is made use of within these bounds.
int count_at(const json& object, const char* key, int max = 1'000'000) {
  return std::clamp(number_at(object, key), 0, max);
}

std::optional<FirstFailure> first_failure_from_json(const json& status) {
  const json& object = object_at(status, "firstFailure");
  if (object.empty()) return std::nullopt;
  return FirstFailure{
      .attempt = number_at(object, "attempt"),
      .rank = number_at(object, "rank"),
      .node = string_at(object, "node"),
      .cause = parse_cause(string_at(object, "cause")).value_or(FailureCause::exit_code),
      .exit_code = maybe_number_at(object, "exitCode"),
      .reason = string_at(object, "reason"),
      .message = string_at(object, "message"),
      .finished_at = time_at(object, "finishedAt"),
      .collateral_count = number_at(object, "collateral"),
      .step = maybe_number_at<long long>(object, "step")};
}

template <typename T>
json value_or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json to_json(const std::optional<FirstFailure>& failure) {
  if (!failure) return nullptr;
  const bool by_signal = failure->exit_code && *failure->exit_code > exit_code::kSignalBase;
  return {
      {"attempt", failure->attempt},
      {"rank", failure->rank},
      {"node", failure->node},
      {"cause", to_string(failure->cause)},
      {"exitCode", failure->exit_code ? json(*failure->exit_code) : json(nullptr)},
      {"signal", by_signal ? json(*failure->exit_code - exit_code::kSignalBase) : json(nullptr)},
      {"reason", failure->reason},
      {"message", failure->message},
      {"finishedAt", time_or_null(failure->finished_at)},
      {"collateral", failure->collateral_count},
      {"step", value_or_null(failure->step)}};
}

std::optional<JobProgress> progress_from_json(const json& status) {
  const json& object = object_at(status, "progress");
  if (object.empty()) return std::nullopt;
  return JobProgress{.attempt = number_at(object, "attempt"),
                     .step = number_at<long long>(object, "step"),
                     .total_steps = number_at<long long>(object, "totalSteps"),
                     .phase = string_at(object, "phase"),
                     .eta_seconds = maybe_number_at<long long>(object, "etaSeconds"),
                     .loss = maybe_real_at(object, "loss"),
                     .tokens_per_second = maybe_real_at(object, "tokensPerSecond"),
                     .mfu = maybe_real_at(object, "mfu"),
                     .updated_at = time_at(object, "updatedAt")};
}

json to_json(const std::optional<JobProgress>& progress) {
  if (!progress) return nullptr;
  const bool knows_total = progress->total_steps > 0;
  return {{"attempt", progress->attempt},
          {"step", progress->step},
          {"totalSteps", knows_total ? json(progress->total_steps) : json(nullptr)},
          {"percent", value_or_null(percent_of(*progress))},
          {"text", to_text(*progress)},
          {"phase", progress->phase},
          {"etaSeconds", value_or_null(progress->eta_seconds)},
          {"loss", value_or_null(progress->loss)},
          {"tokensPerSecond", value_or_null(progress->tokens_per_second)},
          {"mfu", value_or_null(progress->mfu)},
          {"updatedAt", time_or_null(progress->updated_at)}};
}

std::optional<LastCheckpoint> last_checkpoint_from_json(const json& status) {
  const json& object = object_at(status, "lastCheckpoint");
  if (object.empty()) return std::nullopt;
  return LastCheckpoint{.step = number_at<long long>(object, "step"),
                        .path = string_at(object, "path"),
                        .time = time_at(object, "time")};
}

json to_json(const std::optional<LastCheckpoint>& saved) {
  if (!saved) return nullptr;
  return {{"step", saved->step}, {"path", saved->path}, {"time", time_or_null(saved->time)}};
}

ReplicaStatus replicas_from_json(const json& status) {
  const json& worker = object_at(object_at(status, "replicaStatuses"), "Worker");
  return {.desired = number_at(worker, "desired"),
          .active = number_at(worker, "active"),
          .terminating = number_at(worker, "terminating"),
          .ready = number_at(worker, "ready"),
          .succeeded = number_at(worker, "succeeded"),
          .failed = number_at(worker, "failed")};
}

json to_json(const ReplicaStatus& workers) {
  return {{"desired", workers.desired},         {"active", workers.active},
          {"terminating", workers.terminating}, {"ready", workers.ready},
          {"succeeded", workers.succeeded},     {"failed", workers.failed}};
}

TroubledRank troubled_rank_from_json(const json& object) {
  return {.rank = number_at(object, "rank"),
          .pod = string_at(object, "pod"),
          .node = string_at(object, "node"),
          .reason = string_at(object, "reason"),
          .message = string_at(object, "message")};
}

json to_json(const TroubledRank& trouble) {
  return {{"rank", trouble.rank},
          {"pod", trouble.pod},
          {"node", trouble.node},
          {"reason", trouble.reason},
          {"message", trouble.message}};
}

NodeFailures node_failures_from_json(const json& object) {
  return {.node = string_at(object, "node"),
          .count = number_at(object, "count"),
          .refused_time = time_at(object, "refusedTime")};
}

json to_json(const NodeFailures& failures) {
  json object{{"node", failures.node}, {"count", failures.count}};
  if (failures.refused_time) object["refusedTime"] = format_time(*failures.refused_time);
  return object;
}

template <typename T>
json list_of(const std::vector<T>& items) {
  json list = json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

template <typename T>
std::vector<T> list_at(const json& parent, const char* key, T (*from_json)(const json&)) {
  const json& list = array_at(parent, key);
  std::vector<T> items;
  items.reserve(list.size());  // a thousand jobs keep theirs, without room to grow
  for (const json& item : list) items.push_back(from_json(item));
  return items;
}

}  // namespace

JobStatus status_from_json(const json& object) {
  return {.phase = parse_phase(string_at(object, "phase")).value_or(Phase::pending),
          .reason = string_at(object, "reason"),
          .message = string_at(object, "message"),
          .observed_generation = number_at<long long>(object, "observedGeneration"),
          .attempt = count_at(object, "attempt"),
          .world_size = count_at(object, "worldSize", static_cast<int>(field::kWorkers.max)),
          .template_hash = string_at(object, "templateHash"),
          .attempt_start_time = time_at(object, "attemptStartTime"),
          .running_time = time_at(object, "runningTime"),
          .restarts = count_at(object, "restarts"),
          .restarts_counted = count_at(object, "restartsCounted"),
          .restarts_uncounted = number_at(object, "restartsUncounted"),
          .restart_step = maybe_number_at<long long>(object, "restartStep"),
          .quick_restarts = number_at(object, "quickRestarts"),
          .furthest_step = maybe_number_at<long long>(object, "furthestStep"),
          .node_failures = list_at(object, "nodeFailures", node_failures_from_json),
          .excluded_nodes = list_at(object, "excludedNodes", read::text_of),
          .last_exclusion_time = time_at(object, "lastExclusionTime"),
          .troubled_ranks = list_at(object, "troubledRanks", troubled_rank_from_json),
          .succeeded_ranks = RankSet::parse(string_at(object, "succeededRanks")),
          .network_policy_hash = string_at(object, "networkPolicyHash"),
          .ready_text = string_at(object, "ready"),
          .selector = string_at(object, "selector"),
          .start_time = time_at(object, "startTime"),
          .completion_time = time_at(object, "completionTime"),
          .workers = replicas_from_json(object),
          .first_failure = first_failure_from_json(object),
          .progress = progress_from_json(object),
          .last_checkpoint = last_checkpoint_from_json(object),
          .conditions = list_at(object, "conditions", condition_from_json)};
}

json to_json(const JobStatus& status) {
  return {{"phase", to_string(status.phase)},
          {"reason", status.reason},
          {"message", status.message},
          {"observedGeneration", status.observed_generation},
          {"attempt", status.attempt},
          {"worldSize", status.world_size},
          {"templateHash", status.template_hash},
          {"attemptStartTime", time_or_null(status.attempt_start_time)},
          {"runningTime", time_or_null(status.running_time)},
          {"restarts", status.restarts},
          {"restartsCounted", status.restarts_counted},
          {"restartsUncounted", status.restarts_uncounted},
          {"restartStep", value_or_null(status.restart_step)},
          {"quickRestarts", status.quick_restarts},
          {"furthestStep", value_or_null(status.furthest_step)},
          {"nodeFailures", list_of(status.node_failures)},
          {"excludedNodes", status.excluded_nodes},
          {"lastExclusionTime", time_or_null(status.last_exclusion_time)},
          {"troubledRanks", list_of(status.troubled_ranks)},
          {"succeededRanks",
           status.succeeded_ranks.empty() ? json(nullptr) : json(status.succeeded_ranks.text())},
          {"networkPolicyHash",
           status.network_policy_hash.empty() ? json(nullptr) : json(status.network_policy_hash)},
          {"ready", status.ready_text},
          {"selector", status.selector},
          {"startTime", time_or_null(status.start_time)},
          {"completionTime", time_or_null(status.completion_time)},
          {"replicaStatuses", {{"Worker", to_json(status.workers)}}},
          {"firstFailure", to_json(status.first_failure)},
          {"progress", to_json(status.progress)},
          {"lastCheckpoint", to_json(status.last_checkpoint)},
          {"conditions", list_of(status.conditions)}};
}

}  // namespace tj
