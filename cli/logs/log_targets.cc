#include "cli/logs/log_targets.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/policy_fields.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using namespace read;

const json& status_of(const json& pod, const std::string& container) {
  static const json kNone = json::object();
  const json& status = object_at(pod, "status");
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json& each : array_at(status, list)) {
      if (string_at(each, "name") == container) return each;
    }
  }
  return kNone;
}

bool has_container(const json& pod, const std::string& container) {
  const json& spec = object_at(pod, "spec");
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& each : array_at(spec, list)) {
      if (string_at(each, "name") == container) return true;
    }
  }
  return false;
}

std::optional<LogTarget> target_of(const json& object, const LogSelection& selection) {
  const auto pod = trim_pod(object);
  if (!pod || pod->worker_index < 0) return std::nullopt;
  const bool is_wanted = (!selection.ranks || selection.ranks->contains(pod->worker_index)) &&
                         (!selection.attempt || *selection.attempt == pod->attempt);
  if (!is_wanted) return std::nullopt;
  const std::string container =
      selection.container.empty() ? string_at(main_container(object), "name") : selection.container;
  if (!has_container(object, container)) return std::nullopt;
  const json& status = status_of(object, container);
  const json& state = object_at(status, "state");
  const bool is_running = state.contains("running");
  const bool has_run =
      state.contains("terminated") || object_at(status, "lastState").contains("terminated");
  const bool pod_has_ended = pod->phase == PodPhase::succeeded || pod->phase == PodPhase::failed;
  return LogTarget{.rank = pod->worker_index,
                   .attempt = pod->attempt,
                   .pod = pod->meta.name,
                   .uid = pod->meta.uid,
                   .container = container,
                   .restart_count = number_at(status, "restartCount"),
                   .has_started = is_running || has_run,
                   .has_ended = !is_running && (state.contains("terminated") || pod_has_ended)};
}

/// Takes a rank off the front of `text`.
std::optional<int> take_rank(std::string_view& text) {
  int rank = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (read.ec != std::errc{} || rank < 0 || rank >= field::kWorkers.max) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return rank;
}

}  // namespace

std::string LogTarget::identity() const {
  return uid + "/" + container + "/" + std::to_string(restart_count);
}

std::vector<LogTarget> log_targets(const std::vector<json>& pods, const LogSelection& selection) {
  std::vector<LogTarget> targets;
  for (const json& pod : pods) {
    if (auto target = target_of(pod, selection)) targets.push_back(*std::move(target));
  }
  std::sort(targets.begin(), targets.end(), [](const LogTarget& a, const LogTarget& b) {
    return std::tie(a.attempt, a.rank, a.pod) < std::tie(b.attempt, b.rank, b.pod);
  });
  return targets;
}

Result<void> check_container(const std::vector<json>& pods, const std::string& container) {
  if (container.empty() || pods.empty()) return {};
  std::set<std::string> names;
  for (const json& pod : pods) {
    if (has_container(pod, container)) return {};
    for (const char* list : {"containers", "initContainers"}) {
      for (const json& each : array_at(object_at(pod, "spec"), list))
        names.insert(string_at(each, "name"));
    }
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return Error{Code::invalid,
               "the workers have no container \"" + container + "\"; it must be one of " + known,
               "--container",
               {}};
}

Result<RankSet> parse_ranks(const std::string& text) {
  const Error wrong{Code::invalid,
                    "\"" + text + "\" names no ranks; it must be ranks below " +
                        std::to_string(field::kWorkers.max) + " and ranges of them, as in 0,7-9",
                    "--rank",
                    {}};
  RankSet ranks;
  std::string_view rest = text;
  for (;;) {
    const auto first = take_rank(rest);
    const bool is_range = first && rest.starts_with('-');
    if (is_range) rest.remove_prefix(1);
    const auto last = is_range ? take_rank(rest) : first;
    if (!first || !last || *last < *first) return wrong;
    for (int rank = *first; rank <= *last; ++rank) ranks.insert(rank);
    if (rest.empty()) return ranks;
    if (!rest.starts_with(',')) return wrong;
    rest.remove_prefix(1);
  }
}

}  // namespace tj
