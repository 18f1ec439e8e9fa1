#include "operator/plan/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "contract/outcome.h"
#include "operator/api/pod_json.h"

namespace tj {
namespace {
using nlohmann::json;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What the main container asks of `resource`; empty if it does not say.
std::string requested(const TrainingJob& job, const std::string& resource) {
  const json pod_template = json::parse(job.spec.pod_template_json, nullptr, false);
  const std::string request = quantity_of(main_container(pod_template), "requests", resource);
  return request.empty() ? quantity_of(main_container(pod_template), "limits", resource) : request;
}

/// The scheduler's "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: ..." as
/// "0/2 nodes have 8 nvidia.com/gpu free"; where several things are missing, its own words.
std::string describe_unschedulable(const TrainingJob& job, const std::string& message) {
  const auto preemption = message.find("preemption:");
  const auto end = preemption == std::string::npos ? preemption : message.rfind(". ", preemption);
  std::string text = message.substr(0, end);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  constexpr std::string_view kAvailable = " nodes are available: ";
  constexpr std::string_view kInsufficient = " Insufficient ";
  const auto available = text.find(kAvailable);
  const auto insufficient = text.find(kInsufficient);
  const bool one_thing = available != std::string::npos && insufficient != std::string::npos &&
                         text.find(',') == std::string::npos;
  if (!one_thing) return text;
  const std::string resource = text.substr(insufficient + kInsufficient.size());
  const std::string count = requested(job, resource);
  return text.substr(0, available) + " nodes have " + (count.empty() ? "enough" : count) + " " +
         resource + " free";
}

/// kubelet alternates between ErrImagePull and ImagePullBackOff, each with other words.
std::string describe_pull(const std::string& message) {
  if (contains(message, "not found")) return "its image is not found in the registry";
  const bool is_denied = contains(message, "nauthorized") || contains(message, "denied") ||
                         contains(message, "forbidden");
  if (is_denied) return "its image may not be pulled: access denied";
  const bool is_unreachable = contains(message, "no such host") || contains(message, "timeout") ||
                              contains(message, "connection refused");
  return is_unreachable ? "its image can't be pulled: the registry can't be reached"
                        : "its image can't be pulled";
}

bool is_pull_trouble(const std::string& reason) {
  return reason == "ErrImagePull" || reason == "ImagePullBackOff";
}

struct Trouble {
  std::string reason;
  std::string words;  // about the job if it concerns all nodes, else about the worker
  bool is_of_worker = true;
};

std::optional<Trouble> trouble_of(const Observed& observed, const Pod& pod) {
  if (has_started(pod)) return std::nullopt;
  if (pod.waiting_reason == "Unschedulable") {
    std::string words = describe_unschedulable(observed.job, pod.waiting_message);
    if (pod.waiting_since) words += ", since " + clock_text(*pod.waiting_since);
    return Trouble{pod.waiting_reason, std::move(words), false};
  }
  if (is_pull_trouble(pod.waiting_reason)) {
    return Trouble{"ImagePullBackOff", describe_pull(pod.waiting_message), true};
  }
  if (!pod.waiting_reason.empty()) {
    const bool has_message = !pod.waiting_message.empty();
    return Trouble{pod.waiting_reason,
                   pod.waiting_reason + (has_message ? ": " + pod.waiting_message : ""), true};
  }
  const auto& news = observed.pod_news;
  if (news && news->pod_uid == pod.meta.uid) {
    return Trouble{news->reason, news->reason + ": " + news->message, true};
  }
  return std::nullopt;
}

/// Of a log's tail the last line tells most; all of it stands in status.firstFailure.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const auto before = text.find_last_of('\n', end);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

/// What comes next for a worker that nothing holds up.
std::string describe_next_step(const Gang& gang, int rank) {
  const std::string worker = "worker " + std::to_string(rank);
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(rank)];
  if (pod == nullptr) {
    const Pod* earlier = predecessor_of(gang, rank);
    if (earlier == nullptr) return worker + " has no pod yet";
    return worker + "'s earlier pod has still to go" +
           (earlier->node.empty() ? "" : " from node " + earlier->node);
  }
  if (pod->node.empty()) return worker + " has no node yet";
  return worker + " is being set up on node " + pod->node;
}

}  // namespace

std::string clock_text(TimePoint time) { return format_time(time).substr(11); }

std::vector<TroubledRank> troubled_ranks(const Observed& observed, const Gang& gang) {
  std::vector<TroubledRank> list;
  for (const Pod* pod : gang.by_rank) {
    if (list.size() == kTroubledRanksMax) break;
    const auto trouble = pod != nullptr ? trouble_of(observed, *pod) : std::nullopt;
    if (!trouble) continue;
    list.push_back({.rank = pod->worker_index,
                    .pod = pod->meta.name,
                    .node = pod->node,
                    .reason = trouble->reason,
                    .message = trouble->words});
  }
  return list;
}

std::string describe_waiting(const Observed& observed, const Gang& gang) {
  int waiting_count = 0;
  std::optional<int> first_rank;
  std::string trouble_words;
  for (std::size_t index = 0; index < gang.by_rank.size(); ++index) {
    const Pod* pod = gang.by_rank[index];
    if (has_started(gang, static_cast<int>(index))) continue;
    ++waiting_count;
    if (!first_rank) first_rank = static_cast<int>(index);
    if (!trouble_words.empty() || pod == nullptr) continue;
    const auto trouble = trouble_of(observed, *pod);
    if (!trouble) continue;
    const bool names_worker = trouble->is_of_worker;
    trouble_words = (names_worker ? "worker " + std::to_string(index) + ": " : "") + trouble->words;
  }
  std::string text = "waiting for " + std::to_string(waiting_count) + " of " +
                     std::to_string(gang.by_rank.size()) + " workers";
  if (!trouble_words.empty()) return text + ": " + trouble_words;
  return first_rank ? text + ": " + describe_next_step(gang, *first_rank) : text;
}

const Pod* find_silent_start(const Observed& observed, const Gang& gang) {
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr || has_started(*pod) || pod->node.empty()) continue;
    const auto since = pod->meta.creation_time;
    const bool is_silent = pod->waiting_reason.empty() && !pod->meta.deletion_time && since &&
                           observed.now >= *since + kSilentStart;
    if (is_silent) return pod;
  }
  return nullptr;
}

std::string describe_first_failure(const FirstFailure& failure) {
  std::string text;
  const bool speaks_for_itself =
      failure.cause == FailureCause::node_lost || failure.cause == FailureCause::pod_deleted ||
      failure.cause == FailureCause::start_deadline || failure.cause == FailureCause::hung;
  if (speaks_for_itself) {
    text = failure.message;
  } else {
    text = "worker " + std::to_string(failure.rank);
    if (!failure.node.empty()) text += " on node " + failure.node;
    text += " failed first: ";
    if (failure.cause == FailureCause::oom_killed) {
      text += "out of memory (OOMKilled)";
    } else {
      const bool names_reason = !failure.exit_code || failure.cause == FailureCause::disrupted;
      text += names_reason ? failure.reason : describe_exit_code(*failure.exit_code);
    }
    const std::string last_words = last_line(failure.message);
    if (!last_words.empty()) text += ": " + last_words;
  }
  if (failure.collateral_count == 0) return text;
  return text + "; " + std::to_string(failure.collateral_count) + " other " +
         (failure.collateral_count == 1 ? "worker" : "workers") + " failed after it";
}

}  // namespace tj
