// What rules look at: a job, its pods, the events of both and the nodes, as an API server gives
// them. Read leniently: what is not there is not seen. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/finding.h"
#include "contract/result.h"
#include "operator/api/rank_set.h"
#include "operator/api/types.h"

namespace tj {

/// What was gathered, as JSON.
struct Gathered {
  nlohmann::json job;
  std::vector<nlohmann::json> pods;
  std::vector<nlohmann::json> events;  // of the job and of its pods; of others too
  std::vector<nlohmann::json> nodes;
};

struct EventFacts {
  std::string kind;  // of what it is about
  std::string name;
  std::string reason;
  std::string message;
  std::optional<TimePoint> time;  // the last
};

struct PodFacts {
  Pod pod;
  nlohmann::json object;
  bool has_started = false;
  std::string trouble;  // in the operator's words; empty: none that the pod tells
};

struct Evidence {
  TrainingJob job;
  std::vector<PodFacts> pods;  // of the job's own, by attempt and rank
  std::vector<EventFacts> events;
  std::vector<nlohmann::json> nodes;
  TimePoint now;

  /// Of the attempt that the job is in, and not started.
  std::vector<const PodFacts*> waiting() const;
  /// The last of the events of an object with one of these reasons.
  const EventFacts* event_of(std::string_view kind, const std::string& name,
                             std::string_view reason) const;
};

/// Fails only where the job has no name.
Result<Evidence> read_evidence(const Gathered& gathered, TimePoint now);

bool contains(std::string_view text, std::string_view part);
/// "worker 3" or "workers 0-2,5".
std::string workers_text(const RankSet& ranks);
/// "pod a-worker-3", or the first of them "and 3 more".
std::string pods_text(const std::vector<const PodFacts*>& pods);

}  // namespace tj
