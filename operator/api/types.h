// The objects the operator thinks about, as plain values: its own resource, and the few fields of
// pods, Services and nodes that decide anything. JSON stands in api/json.h; nothing here knows
// about HTTP.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/names.h"

namespace tj {

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;

/// "2026-11-21T01:10:40Z": RFC 3339 in UTC, whole seconds, as metav1.Time.
std::string format_time(TimePoint time);
/// Absent when `text` is not RFC 3339; fractions of a second and offsets are read.
std::optional<TimePoint> parse_time(const std::string& text);

/// `namespace/name`, or the name alone for cluster-wide objects.
struct ObjectKey {
  std::string ns;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};
std::string to_string(const ObjectKey& key);

struct ObjectMeta {
  std::string name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  long long generation = 0;
  std::map<std::string, std::string> labels;
  std::string controller_uid;  // uid of the ownerReference with controller=true; empty: none
  std::optional<TimePoint> creation_time;
  std::optional<TimePoint> deletion_time;  // set: terminating, and still alive
  ObjectKey key() const { return {ns, name}; }
  bool operator==(const ObjectMeta&) const = default;
};

enum class Phase { pending, starting, running, succeeded, failed };
const char* to_string(Phase phase);  // "Pending", ...
std::optional<Phase> parse_phase(const std::string& text);
constexpr bool is_terminal(Phase phase) {
  return phase == Phase::succeeded || phase == Phase::failed;
}

/// The spec as the user wrote it. The pod template is kept as JSON text, untouched: a struct would
/// drop fields.
struct JobSpec {
  int worker_count = 1;
  std::string pod_template_json;  // {"metadata": {...}, "spec": {...}}; canonical dump, so equality
                                  // is by value
  bool operator==(const JobSpec&) const = default;
};

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  long long observed_generation = 0;
  std::optional<TimePoint> last_transition_time;
  bool operator==(const Condition&) const = default;
};

/// Counts of workers; `desired` is the spec's.
struct ReplicaStatus {
  int desired = 0;
  int active = 0;  // created and not ended
  int ready = 0;   // running with its main container ready
  int succeeded = 0;
  int failed = 0;
  bool operator==(const ReplicaStatus&) const = default;
};

/// The worker that ended first with a failure; the others are collateral.
struct FirstFailure {
  int rank = 0;
  std::string node;
  std::optional<int> exit_code;
  std::string reason;
  std::string message;
  std::optional<TimePoint> finished_at;
  bool operator==(const FirstFailure&) const = default;
};

struct JobStatus {
  Phase phase = Phase::pending;
  std::string reason;
  std::string message;
  long long observed_generation = 0;
  int attempt = 0;         // one value for the whole gang; a restart (next issue) counts it up
  std::string ready_text;  // "2/2": the READY column
  std::string selector;    // of the job's pods, for the scale subresource
  std::optional<TimePoint> start_time;
  std::optional<TimePoint> completion_time;
  ReplicaStatus workers;
  std::optional<FirstFailure> first_failure;
  std::vector<Condition> conditions;
  bool operator==(const JobStatus&) const = default;
};

struct TrainingJob {
  ObjectMeta meta;
  JobSpec spec;
  JobStatus status;
  /// The spec can't be read (a field's path and what is wrong with it): the job fails with reason
  /// Invalid.
  std::optional<std::string> spec_error;
  bool operator==(const TrainingJob&) const = default;
};

enum class PodPhase { pending, running, succeeded, failed, unknown };

/// How the main container (the template's first) ended.
struct ContainerExit {
  int exit_code = 0;    // 128+n for signal n
  std::string reason;   // Completed, Error, OOMKilled, ...
  std::string message;  // the termination message
  std::optional<TimePoint> finished_at;
  bool operator==(const ContainerExit&) const = default;
};

/// A worker's pod, trimmed to what decides. Made by trim_pod (api/json.h).
struct Pod {
  ObjectMeta meta;
  std::string job_name;   // label kubebrain.io/trainingjob
  int worker_index = -1;  // from its label; -1: not a number
  int attempt = -1;
  PodPhase phase = PodPhase::pending;
  bool ready = false;
  std::string node;
  std::string reason;          // pod-level status.reason (Evicted, ...)
  std::string message;         // pod-level status.message
  std::string waiting_reason;  // why it does not start: Unschedulable, ImagePullBackOff, ...
  std::string waiting_message;
  std::optional<ContainerExit> exit;
  bool operator==(const Pod&) const = default;
};

struct Service {
  ObjectMeta meta;
  std::string job_name;
  bool operator==(const Service&) const = default;
};

}  // namespace tj
