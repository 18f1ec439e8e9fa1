// The objects the operator thinks about, as plain values: its own resource, and the few fields of
// pods, Services and nodes that decide anything. JSON stands in api/json.h; nothing here knows
// about HTTP.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "contract/names.h"
#include "operator/api/rank_set.h"

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
  std::string controller_uid;  // uid of the ownerReference with controller=true; empty: none
  std::optional<TimePoint> creation_time;
  std::optional<TimePoint> deletion_time;  // set: terminating, and still alive
  ObjectKey key() const { return {ns, name}; }
  bool operator==(const ObjectMeta&) const = default;
};

enum class Phase { pending, starting, running, restarting, suspended, succeeded, failed };
const char* to_string(Phase phase);  // "Pending", ...
std::optional<Phase> parse_phase(const std::string& text);
constexpr bool is_terminal(Phase phase) {
  return phase == Phase::succeeded || phase == Phase::failed;
}

/// Which pods of a finished job are removed: those that still run, all, or none (they run on).
enum class CleanPods { running, all, none };

/// What is restarted when a worker is lost.
enum class RestartScope { gang };

/// What a failure leads to. Restarts are of the whole gang.
enum class FailureAction { restart, restart_ignoring_budget, fail, exclude_node_and_restart };
const char* to_string(FailureAction action);  // "Restart", ...
std::optional<FailureAction> parse_action(const std::string& text);

/// What ended a worker, as far as the cluster can tell.
enum class FailureCause {
  exit_code,     // the program's own code
  signal,        // 128+n
  oom_killed,    // the kernel took its memory limit seriously
  disrupted,     // preempted, evicted, drained: condition DisruptionTarget, or Evicted and the like
  node_lost,     // its node has not been heard of
  pod_deleted,   // somebody deleted the pod
  pod_rejected,  // the node would not take it (UnexpectedAdmissionError, OutOfcpu, ...)
  start_deadline,  // not all workers ran in time
  hung,            // the run stands still, or its rank 0 no longer says how it is doing
};
const char* to_string(FailureCause cause);  // "ExitCode", "OOMKilled", ...: status and metrics
std::optional<FailureCause> parse_cause(const std::string& text);

/// Matches a failure if any entry of any list does.
struct FailureRule {
  FailureAction action = FailureAction::restart;
  std::vector<int> exit_codes;
  std::vector<int> signals;
  std::vector<std::string> conditions;  // type or reason of a pod condition
  std::vector<FailureCause> causes;
  bool operator==(const FailureRule&) const = default;
};

struct FailurePolicy {
  std::vector<FailureRule> rules;  // first match wins; the built-in ones come after
  bool operator==(const FailurePolicy&) const = default;
};

/// As in api/policy_fields.h, which names each field of the policies.
struct RunPolicy {
  bool suspend = false;
  std::optional<std::chrono::seconds> active_deadline;
  std::optional<std::chrono::seconds> start_deadline;
  std::optional<std::chrono::seconds> ttl_after_finished;
  std::optional<std::chrono::seconds> restart_budget_reset;
  bool resets_budget_on_progress = true;
  std::optional<std::chrono::seconds> heartbeat_timeout;  // absent: a hang is not looked for
  CleanPods clean_pods = CleanPods::running;
  int max_restarts = 3;
  std::chrono::seconds restart_backoff{10};  // before a restart, doubled each time in a row
  RestartScope restart_scope = RestartScope::gang;
  std::string managed_by = names::kManager;
  bool operator==(const RunPolicy&) const = default;
};

enum class SuccessPolicy { all_workers, worker0 };

struct NodeLoss {
  std::chrono::seconds tolerance{30};     // without news of a node, its workers are lost
  std::chrono::seconds force_delete{30};  // after that, its pods are removed by force; -1: never
  std::chrono::seconds exclude{3'600};    // an excluded node comes back after that
  bool forces_deletion() const { return force_delete.count() >= 0; }
  bool operator==(const NodeLoss&) const = default;
};

struct Network {
  bool network_policy = false;
  bool operator==(const Network&) const = default;
};

/// The spec as the user wrote it. The pod template is kept as JSON text, untouched: a struct would
/// drop fields.
struct JobSpec {
  int worker_count = 1;
  std::string pod_template_json;  // {"metadata": {...}, "spec": {...}}; canonical dump, so equality
                                  // is by value
  RunPolicy run;
  FailurePolicy failure;
  SuccessPolicy success = SuccessPolicy::all_workers;
  NodeLoss node_loss;
  int master_port = names::kMasterPortDefault;
  std::optional<int> nproc_per_node;  // absent: from the container's GPU limits, else "auto"
  Network network;
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

/// Counts of workers; `desired` is the spec's. Of the current attempt, but for `active` and
/// `terminating`: what is alive is alive.
struct ReplicaStatus {
  int desired = 0;
  int active = 0;       // created and not ended, of any attempt
  int terminating = 0;  // asked to go and not gone, of any attempt
  int ready = 0;        // running with its main container ready
  int succeeded = 0;
  int failed = 0;
  bool operator==(const ReplicaStatus&) const = default;
};

/// The worker that ended first with a failure; the others are collateral.
struct FirstFailure {
  int attempt = 0;
  int rank = 0;
  std::string node;
  FailureCause cause = FailureCause::exit_code;
  std::optional<int> exit_code = std::nullopt;  // 128+n for signal n
  std::string reason = {};
  std::string message = {};
  std::optional<TimePoint> finished_at = std::nullopt;
  int collateral_count = 0;  // workers that had failed after it when the verdict fell
  std::optional<long long> step = std::nullopt;  // last finished one, where its last words say it
  bool operator==(const FirstFailure&) const = default;
};

/// How the run is doing: the document of rank 0 (contract/progress.h) that was written last.
struct JobProgress {
  int attempt = 0;
  long long step = 0;
  long long total_steps = 0;  // 0: not known
  std::string phase;
  std::optional<long long> eta_seconds;
  std::optional<double> loss;
  std::optional<double> tokens_per_second;
  std::optional<double> mfu;  // 0 to 1
  std::optional<TimePoint> updated_at;
  bool operator==(const JobProgress&) const = default;
};
/// Whole per cent; absent where the total is not known.
std::optional<int> percent_of(const JobProgress& progress);
/// "120/1000 (12%)", or "120" where the total is not known: the PROGRESS column.
std::string to_text(const JobProgress& progress);

struct LastCheckpoint {
  long long step = 0;
  std::string path;
  std::optional<TimePoint> time;  // when the operator first read of it
  bool operator==(const LastCheckpoint&) const = default;
};

/// How often a node was to blame for the end of an attempt.
struct NodeFailures {
  std::string node;
  int count = 0;
  std::optional<TimePoint> refused_time;  // when it last refused a pod, of what counts
  bool operator==(const NodeFailures&) const = default;
};

/// A worker that does not run as it should, in the words of whoever holds it up.
struct TroubledRank {
  int rank = 0;
  std::string pod;
  std::string node;
  std::string reason;
  std::string message;
  bool operator==(const TroubledRank&) const = default;
};

struct JobStatus {
  Phase phase = Phase::pending;
  std::string reason;
  std::string message;
  long long observed_generation = 0;
  // The attempt: one number for the whole gang, and what its pods are made from. It counts up with
  // each restart, resize and resumption; it never goes back.
  int attempt = 0;
  int world_size = 0;                           // of this attempt; 0: not recorded yet
  std::string template_hash;                    // of what its pods are made from
  std::optional<TimePoint> attempt_start_time;  // still to come: until then it waits
  std::optional<TimePoint> running_time;        // all its workers have run since

  int restarts = 0;
  int restarts_counted = 0;               // since they were earned back: maxRestarts bounds them
  int restarts_uncounted = 0;             // those that leave maxRestarts alone
  std::optional<long long> restart_step;  // where the run was at the last of these
  int quick_restarts = 0;  // in a row, after attempts that ran shortly and came no further
  std::optional<long long> furthest_step;  // where the run has been at any restart
  std::vector<NodeFailures> node_failures;
  std::vector<std::string> excluded_nodes;
  std::optional<TimePoint> last_exclusion_time;  // of the last of these
  std::vector<TroubledRank> troubled_ranks;
  RankSet succeeded_ranks;          // of this attempt: they need no pod any more
  std::string network_policy_hash;  // of the network policy that is there; empty: none is
  std::string ready_text;           // "2/2": the READY column
  std::string selector;             // of the job's pods, for the scale subresource
  std::optional<TimePoint> start_time;
  std::optional<TimePoint> completion_time;
  ReplicaStatus workers;
  std::optional<FirstFailure> first_failure;
  std::optional<JobProgress> progress;  // of an earlier attempt until this one has said something
  std::optional<LastCheckpoint> last_checkpoint;
  std::vector<Condition> conditions;
  bool operator==(const JobStatus&) const = default;
};

struct TrainingJob {
  ObjectMeta meta;
  JobSpec spec;
  JobStatus status;
  /// What is wrong with the spec (a field's path, and what): a job that has no status yet fails
  /// with reason Invalid.
  std::optional<std::string> spec_error;
  /// An annotation that can't be read, and what is wrong with it: the job runs as if it said "off".
  std::optional<std::string> annotation_error;
  /// Where rank 0 serves its progress document; absent: nobody asks.
  std::optional<int> progress_port = names::kProgressPortDefault;
  bool operator==(const TrainingJob&) const = default;
};

enum class PodPhase { pending, running, succeeded, failed, unknown };

/// How the main container (the template's first) ended.
struct ContainerExit {
  int exit_code = 0;    // 128+n for signal n
  std::string reason;   // Completed, Error, OOMKilled, ...
  std::string message;  // the termination message
  std::optional<TimePoint> finished_at;
  std::optional<TimePoint> started_at;
  bool operator==(const ContainerExit&) const = default;
};

/// A condition of a pod that is true and out of the ordinary: Ready and its like are left out.
struct PodCondition {
  std::string type;    // DisruptionTarget, ...
  std::string reason;  // PreemptionByScheduler, DeletionByTaintManager, EvictionByEvictionAPI, ...
  std::string message;
  bool operator==(const PodCondition&) const = default;
};

/// A worker's pod, trimmed to what decides. Made by trim_pod (api/json.h).
struct Pod {
  ObjectMeta meta;
  std::string job_name;   // label kubebrain.io/trainingjob
  int worker_index = -1;  // as it was told when it was made; -1: not a number
  int attempt = -1;
  PodPhase phase = PodPhase::pending;
  bool ready = false;
  std::string node;
  std::string ip;              // of rank 0 alone: nobody else is asked
  std::string reason;          // pod-level status.reason (Evicted, ...)
  std::string message;         // pod-level status.message
  std::string waiting_reason;  // why it does not start: Unschedulable, ImagePullBackOff, ...
  std::string waiting_message;
  std::optional<TimePoint> waiting_since;  // only where the pod says it
  std::vector<PodCondition> conditions;
  std::optional<ContainerExit> exit;
  bool operator==(const Pod&) const = default;
};

/// A node, trimmed to whether it is heard of.
struct Node {
  ObjectMeta meta;
  // Set: its kubelet has been silent since (condition Ready is Unknown). NotReady alone is no loss:
  // then the kubelet speaks, and may still run its pods.
  std::optional<TimePoint> silent_since;
  bool operator==(const Node&) const = default;
};

/// What the pods of an attempt are made from.
struct AttemptRecord {
  int world_size = 0;
  std::string template_hash;
  bool operator==(const AttemptRecord&) const = default;
};

struct Service {
  ObjectMeta meta;
  std::string job_name;
  /// Of attempt 0: the Service comes before the first of its pods, and before the first status.
  std::optional<AttemptRecord> first_attempt;
  bool operator==(const Service&) const = default;
};

}  // namespace tj
