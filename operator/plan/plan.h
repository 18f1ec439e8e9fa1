// The one place that decides. Pure: it reads its argument and nothing else; time is part of the
// argument. Around it: watch and cache build Observed, apply carries out Plan (operator/loop).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/progress.h"
#include "operator/api/types.h"
#include "operator/plan/actions.h"

namespace tj {

/// denied: a quota, a right or a policy; a later try may pass. invalid: the API server's own
/// validation, the same answer for ever. name_taken: an object of another owner stands there,
/// perhaps one that the caches do not hold. internal: a bug of ours, nothing was asked.
enum class Refusal { denied, invalid, name_taken, internal };

/// The events of a pod that waits and gives no reason: a volume that can't be mounted, say.
struct PodNews {
  std::string pod_uid;
  std::string reason;
  std::string message;
  bool operator==(const PodNews&) const = default;
};

/// What was read of the progress document of rank 0. Safe to lose: that it was read at all in this
/// attempt stands in the status.
struct ProgressNews {
  std::string pod_uid;               // of the pod that was asked
  std::optional<Progress> document;  // the last that it gave
  /// From the first to the last of the readings that have failed since; zero: the last one went
  /// well, or too few have failed to tell.
  std::chrono::milliseconds unreadable_for{0};
};

/// At least so long between two writes of a job's progress.
inline constexpr std::chrono::milliseconds kProgressIntervalMin{10'000};

/// All that is known about one job. Children are those labelled with its name, whoever owns them.
struct Observed {
  TrainingJob job;
  std::vector<Pod> pods;
  /// Those that have departed (below) since the status was written, as they were last seen: an end
  /// and the deletion after it may be seen at once. Safe to lose.
  std::vector<Pod> departed = {};
  std::optional<Service> service;
  TimePoint now;
  std::vector<Node> nodes;          // those that its pods are on, as far as nodes are watched
  std::optional<PodNews> pod_news;  // the answer to Plan::ask_about; safe to lose
  /// Why the last creation was refused (a quota, a webhook, 422), if it was: apply's only memory,
  /// safe to lose.
  std::optional<std::string> create_error;
  Refusal refusal = Refusal::denied;  // of what kind create_error is
  std::optional<ProgressNews> progress;
  /// Of the network policy that apply has put last (manifest.h), empty if it has taken it away;
  /// safe to lose. Policies are not watched.
  std::optional<std::string> network_policy_hash;
  /// Children of this job were created before; safe to lose.
  bool has_begun = false;
  /// What the plan before said; safe to lose, the wait then begins anew.
  std::optional<TimePoint> awaits_cause_since;
  /// Longer where many jobs run, so that their writes have a bound in sum.
  std::chrono::milliseconds progress_interval = kProgressIntervalMin;
};

/// Recorded only after the status was written.
struct PlannedEvent {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const PlannedEvent&) const = default;
};

struct Plan {
  Actions actions;   // what goes, then network policy, Service, pods by rank
  JobStatus status;  // what the status must be; written only if it differs
  std::vector<PlannedEvent> events;
  std::optional<std::chrono::milliseconds> requeue_after;
  /// All workers that have failed blame a lost peer, whose own report is awaited since then, by
  /// our own clock: theirs may be fast or slow.
  std::optional<TimePoint> awaits_cause_since = std::nullopt;
  bool must_persist_first = false;  // the status must be written before anything is done
  std::string ask_about = {};  // name of a pod whose events would say why it waits; empty: none
  bool operator==(const Plan&) const = default;
};

Plan plan(const Observed& observed);

/// In place of a plan that could not be made, for a bug of ours: the job stays where it is and says
/// why it is not looked after. It is never failed: the next version may know better.
Plan plan_after_bug(const TrainingJob& job, const std::string& words, TimePoint now);

/// Nodes decide something for this job: it has pods that have not ended.
bool needs_nodes(const TrainingJob& job);

/// A worker of the attempt that runs which has ended, or was asked to leave: once it is deleted,
/// nothing but Observed::departed tells a plan how.
bool has_departed(const TrainingJob& job, const Pod& deleted);

/// Another controller looks after this job (runPolicy.managedBy): nothing of it is ours to touch.
bool is_managed_elsewhere(const TrainingJob& job);

/// One line per action, the status and the events: the golden tests' format.
std::string to_text(const Plan& plan, const TrainingJob& job);

}  // namespace tj
