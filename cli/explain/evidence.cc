#include "cli/explain/evidence.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/plan/explain.h"
#include "operator/plan/gang.h"

namespace tj {
namespace {

using namespace read;

EventFacts event_facts(const json& event) {
  const json& object = object_at(event, "involvedObject");
  // The newer form of events has its times elsewhere (events.k8s.io/v1).
  auto time = time_at(event, "lastTimestamp");
  if (!time) time = time_at(object_at(event, "series"), "lastObservedTime");
  if (!time) time = time_at(event, "eventTime");
  if (!time) time = time_at(object_at(event, "metadata"), "creationTimestamp");
  return {.kind = string_at(object, "kind"),
          .name = string_at(object, "name"),
          .reason = string_at(event, "reason"),
          .message = string_at(event, "message"),
          .time = time};
}

bool is_own(const Pod& pod, const TrainingJob& job) {
  const bool knows_owner = !pod.meta.controller_uid.empty() && !job.meta.uid.empty();
  return pod.job_name == job.meta.name && (!knows_owner || pod.meta.controller_uid == job.meta.uid);
}

/// The operator's own words for each waiting rank.
std::map<std::string, std::string> troubles_of(const TrainingJob& job,
                                               const std::vector<PodFacts>& pods, TimePoint now) {
  Observed observed{.job = job, .now = now};
  for (const PodFacts& facts : pods) observed.pods.push_back(facts.pod);
  std::map<std::string, std::string> words;
  for (const TroubledRank& rank : troubled_ranks(observed, gang_of(observed)))
    words[rank.pod] = rank.message;
  return words;
}

}  // namespace

Result<Evidence> read_evidence(const Gathered& gathered, TimePoint now) {
  auto job = job_from_json(gathered.job);
  if (!job) return job.error();
  Evidence evidence{.job = *std::move(job), .nodes = gathered.nodes, .now = now};
  for (const json& object : gathered.pods) {
    auto pod = trim_pod(object);
    if (!pod || pod->worker_index < 0 || !is_own(*pod, evidence.job)) continue;
    const bool has_started = tj::has_started(*pod);
    evidence.pods.push_back({*std::move(pod), object, has_started, ""});
  }
  std::sort(evidence.pods.begin(), evidence.pods.end(), [](const PodFacts& a, const PodFacts& b) {
    return std::tie(a.pod.attempt, a.pod.worker_index) <
           std::tie(b.pod.attempt, b.pod.worker_index);
  });
  const auto troubles = troubles_of(evidence.job, evidence.pods, now);
  for (PodFacts& facts : evidence.pods) {
    const auto found = troubles.find(facts.pod.meta.name);
    if (found != troubles.end()) facts.trouble = found->second;
  }
  for (const json& event : gathered.events) evidence.events.push_back(event_facts(event));
  std::stable_sort(evidence.events.begin(), evidence.events.end(),
                   [](const EventFacts& a, const EventFacts& b) { return a.time < b.time; });
  return evidence;
}

std::vector<const PodFacts*> Evidence::waiting() const {
  std::vector<const PodFacts*> found;
  if (is_terminal(job.status.phase)) return found;
  for (const PodFacts& facts : pods) {
    const bool is_of_now = facts.pod.attempt == job.status.attempt && !facts.pod.meta.deletion_time;
    if (is_of_now && !facts.has_started) found.push_back(&facts);
  }
  return found;
}

const EventFacts* Evidence::event_of(std::string_view kind, const std::string& name,
                                     std::string_view reason) const {
  const EventFacts* last = nullptr;
  for (const EventFacts& event : events) {
    if (event.kind == kind && event.name == name && event.reason == reason) last = &event;
  }
  return last;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string workers_text(const RankSet& ranks) {
  return (ranks.size() == 1 ? "worker " : "workers ") + ranks.text();
}

std::string pods_text(const std::vector<const PodFacts*>& pods) {
  if (pods.empty()) return "";
  std::string text = "pod " + pods.front()->pod.meta.name;
  if (pods.size() > 1) text += " and " + std::to_string(pods.size() - 1) + " more";
  return text;
}

}  // namespace tj
