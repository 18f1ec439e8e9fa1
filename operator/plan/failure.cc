#include "operator/plan/failure.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <tuple>

#include "contract/outcome.h"
#include "operator/plan/backoff.h"
#include "operator/plan/explain.h"
#include "operator/plan/progress.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

template <typename Range, typename Value>
bool has(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

bool is_collateral(const Pod& pod) {
  return pod.exit && pod.exit->exit_code == exit_code::kPeerLost;
}

const PodCondition* find_disruption(const Pod& pod) {
  for (const PodCondition& condition : pod.conditions) {
    if (condition.type == kDisruptionTarget) return &condition;
  }
  return nullptr;
}

/// Reasons that kubelet and node controllers write into a pod that they ended.
FailureCause cause_of_reason(const std::string& reason) {
  constexpr std::array kDisruptions = {"Evicted", "Preempting", "NodeShutdown", "Shutdown",
                                       "Terminated"};
  if (has(kDisruptions, reason)) return FailureCause::disrupted;
  if (reason == "NodeLost") return FailureCause::node_lost;
  const bool is_rejected = reason == "UnexpectedAdmissionError" || reason == "NodeAffinity" ||
                           reason.starts_with("OutOf");
  return is_rejected ? FailureCause::pod_rejected : FailureCause::exit_code;
}

/// DisruptionTarget may be stale, or race with the program's own end (KEP-3329): what the program
/// says for certain goes before it.
FailureCause cause_of(const Pod& pod) {
  const bool program_knows = pod.exit && is_permanent(pod.exit->exit_code);
  if (program_knows) return FailureCause::exit_code;
  if (pod.exit && pod.exit->reason == "OOMKilled") return FailureCause::oom_killed;
  if (find_disruption(pod) != nullptr) return FailureCause::disrupted;
  const FailureCause by_reason = cause_of_reason(pod.reason);
  if (by_reason != FailureCause::exit_code) return by_reason;
  const bool by_signal = pod.exit && pod.exit->exit_code > exit_code::kSignalBase;
  return by_signal ? FailureCause::signal : FailureCause::exit_code;
}

FirstFailure describe_end(const Observed& observed, const Gang& gang, const Pod& pod) {
  FirstFailure what = failure(observed, gang, pod.worker_index, cause_of(pod));
  what.reason = pod.reason.empty() ? "PodFailed" : pod.reason;
  what.message = pod.message;
  what.node = pod.node;
  what.finished_at.reset();
  const PodCondition* disruption = find_disruption(pod);
  if (disruption != nullptr && what.cause == FailureCause::disrupted) {
    what.reason = disruption->reason;
    what.message = disruption->message;
  }
  if (!pod.exit) return what;
  what.exit_code = pod.exit->exit_code;
  what.finished_at = pod.exit->finished_at;  // by the node's clock
  if (what.finished_at) what.finished_at = std::min(*what.finished_at, observed.now);
  if (pod.reason.empty() && what.cause != FailureCause::disrupted) what.reason = pod.exit->reason;
  const auto outcome = from_termination_message(pod.exit->message);
  if (outcome) {
    what.reason = outcome->reason;
    what.message = outcome->message;
    what.step = outcome->step;
  } else if (what.message.empty()) {
    what.message = pod.exit->message;
  }
  return what;
}

/// The shell's codes for a command that can't be executed, or is not there (POSIX.1-2017, XCU
/// 2.8.2).
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

/// What containerd gives, with the reason StartError, in place of these: nothing has run. The words
/// are runc's; another fault of a start (a mount, a device) may not be there the next time.
constexpr int kNotStarted = 128;

bool is_refused_by_runtime(const ContainerExit& exit) {
  const bool is_start = exit.exit_code == kNotStarted && exit.reason == "StartError";
  const auto says = [&exit](const char* words) {
    return exit.message.find(words) != std::string::npos;
  };
  return is_start && (says("exec:") || says("exec format error"));
}

/// A job that has restarted once has had a command that could be run; a container without a start
/// never ran.
bool is_wrong_command(const Observed& observed, const Pod& pod) {
  if (observed.job.status.restarts > 0 || !pod.exit) return false;
  if (is_refused_by_runtime(*pod.exit)) return true;
  const auto& [code, reason, message, finished_at, started_at] = *pod.exit;
  const bool says_so = code == kNotExecutable || code == kNotFound;
  const bool has_run = started_at && (!finished_at || *finished_at - *started_at >= kCommandStart);
  return says_so && !has_run;
}

FirstFailure lost_with_its_node(const Observed& observed, const Gang& gang, const Pod& pod) {
  const TimePoint since = *silent_since(observed, pod);
  FirstFailure what = failure(observed, gang, pod.worker_index, FailureCause::node_lost);
  what.reason = reason::kNodeLost;
  what.message = "node " + pod.node + " has not been heard of since " + format_time(since);
  what.finished_at = since;
  return what;
}

Failure end_of(const Observed& observed, const Gang& gang, const Pod& pod) {
  return {describe_end(observed, gang, pod), pod.conditions, is_collateral(pod),
          is_wrong_command(observed, pod)};
}

FirstFailure lost_with_its_pod(const Observed& observed, const Gang& gang, int rank) {
  FirstFailure what = failure(observed, gang, rank, FailureCause::pod_deleted);
  what.reason = "PodDeleted";
  what.message = "pod " + names::worker_pod(observed.job.meta.name, rank) + " of worker " +
                 std::to_string(rank) + " was deleted while the job ran";
  return what;
}

/// One worker's failure, if it has any.
std::optional<Failure> failure_of(const Observed& observed, const Gang& gang, int rank) {
  if (gang.succeeded.contains(rank)) return std::nullopt;  // whatever became of its pod since
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(rank)];
  if (pod == nullptr) {
    // Before all have started nobody has joined it yet: its pod is simply made again.
    if (observed.job.status.phase != Phase::running) return std::nullopt;
    for (const Pod* departed : gang.departed) {
      if (departed->worker_index == rank) return end_of(observed, gang, *departed);
    }
    return Failure{lost_with_its_pod(observed, gang, rank), {}, false};
  }
  if (has_failed(*pod)) return end_of(observed, gang, *pod);
  const auto at = lost_at(observed, *pod);
  const bool is_lost = at && !has_ended(*pod) && observed.now >= *at;
  if (is_lost) {
    return Failure{lost_with_its_node(observed, gang, *pod), pod->conditions, false};
  }
  return std::nullopt;
}

/// Sorts failures by what they tell: causes before collateral, then by time, then by rank.
auto blame_order(const Failure& failure) {
  return std::tuple(failure.is_collateral, failure.what.finished_at.value_or(TimePoint::max()),
                    failure.what.rank);
}

std::optional<Failure> late_start(const Observed& observed, const Gang& gang) {
  const auto deadline = observed.job.spec.run.start_deadline;
  const auto begun = observed.job.status.attempt_start_time;
  const bool is_late = deadline && begun && observed.now >= *begun + *deadline;
  if (!is_late || all_have_started(gang)) return std::nullopt;
  int rank = 0;
  while (has_started(gang, rank)) ++rank;
  FirstFailure what = failure(observed, gang, rank, FailureCause::start_deadline);
  what.reason = reason::kStartDeadlineExceeded;
  what.message = "not all workers ran within " + std::to_string(deadline->count()) +
                 " s: " + describe_waiting(observed, gang);
  return Failure{std::move(what), {}, false};
}

bool matches(const FailureRule& rule, const Failure& failure) {
  const FirstFailure& what = failure.what;
  if (has(rule.causes, what.cause)) return true;
  if (what.exit_code && has(rule.exit_codes, *what.exit_code)) return true;
  const bool by_signal = what.exit_code && *what.exit_code > exit_code::kSignalBase;
  if (by_signal && has(rule.signals, *what.exit_code - exit_code::kSignalBase)) return true;
  return std::any_of(
      failure.conditions.begin(), failure.conditions.end(), [&](const PodCondition& condition) {
        return has(rule.conditions, condition.type) || has(rule.conditions, condition.reason);
      });
}

/// Signals by which a program ends itself; all others come from outside.
bool is_crash(int signal) {
  constexpr std::array kCrashes = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return has(kCrashes, signal);
}

NodeFailures* find_node(std::vector<NodeFailures>& known, const std::string& node) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const NodeFailures& each) { return each.node == node; });
  return found != known.end() ? &*found : nullptr;
}

/// Too soon after one that counted.
bool is_refused_again(const JobStatus& status, const FirstFailure& what, TimePoint now) {
  return what.cause == FailureCause::pod_rejected &&
         std::any_of(status.node_failures.begin(), status.node_failures.end(),
                     [&](const NodeFailures& each) {
                       return each.node == what.node && each.refused_time &&
                              std::chrono::abs(now - *each.refused_time) < kRefusalInterval;
                     });
}

FailureAction built_in_action(const FirstFailure& what) {
  switch (what.cause) {
    case FailureCause::disrupted:
    case FailureCause::node_lost:
    case FailureCause::pod_deleted: return FailureAction::restart_ignoring_budget;
    case FailureCause::oom_killed:
    case FailureCause::pod_rejected:
    case FailureCause::start_deadline:
    case FailureCause::hung: return FailureAction::restart;
    case FailureCause::signal:
      return what.exit_code && is_crash(*what.exit_code - exit_code::kSignalBase)
                 ? FailureAction::restart
                 : FailureAction::restart_ignoring_budget;
    case FailureCause::exit_code: break;
  }
  if (what.exit_code && is_permanent(*what.exit_code)) return FailureAction::fail;
  const bool may_resume = what.exit_code == exit_code::kInterrupted;
  return may_resume ? FailureAction::restart_ignoring_budget : FailureAction::restart;
}

const char* reason_word(FailureCause cause) {
  switch (cause) {
    case FailureCause::exit_code:
    case FailureCause::signal: return reason::kWorkerFailed;
    case FailureCause::oom_killed: return reason::kOOMKilled;
    case FailureCause::disrupted: return reason::kDisrupted;
    case FailureCause::node_lost: return reason::kNodeLost;
    case FailureCause::pod_deleted: return reason::kWorkerLost;
    case FailureCause::pod_rejected: return reason::kPodRejected;
    case FailureCause::start_deadline: return reason::kStartDeadlineExceeded;
    case FailureCause::hung: return reason::kHung;
  }
  return reason::kWorkerFailed;
}

void list_bounded(std::vector<std::string>& nodes, const std::string& node) {
  if (has(nodes, node)) return;
  if (nodes.size() == kNodesListedMax) nodes.erase(nodes.begin());
  nodes.push_back(node);
}

/// Counts the failure against its node, and excludes a node that has had its chances.
void blame_node(JobStatus& status, const FirstFailure& what, FailureAction action, TimePoint now) {
  const bool by_rule = action == FailureAction::exclude_node_and_restart;
  const bool is_nodes_fault =
      what.cause == FailureCause::node_lost || what.cause == FailureCause::pod_rejected;
  if (what.node.empty() || !(by_rule || is_nodes_fault)) return;
  if (!by_rule && is_refused_again(status, what, now)) return;
  auto& known = status.node_failures;
  NodeFailures* node = find_node(known, what.node);
  if (node == nullptr) {
    if (known.size() == kNodesListedMax) known.erase(known.begin());
    node = &known.emplace_back(NodeFailures{.node = what.node, .count = 0, .refused_time = {}});
  }
  ++node->count;
  const bool is_refusal = what.cause == FailureCause::pod_rejected;
  const bool is_first_refusal = is_refusal && !node->refused_time;
  if (is_refusal) node->refused_time = now;
  const bool has_had_its_chances = node->count >= kNodeFailuresMax && !is_first_refusal;
  if (by_rule || has_had_its_chances) {
    list_bounded(status.excluded_nodes, what.node);
    status.last_exclusion_time = now;
  }
}

/// The attempt has run for long enough, or has come further than the one before.
bool has_earned_a_new_budget(const Observed& observed, const JobStatus& status) {
  const RunPolicy& policy = observed.job.spec.run;
  const bool by_time = policy.restart_budget_reset && status.running_time &&
                       observed.now >= *status.running_time + *policy.restart_budget_reset;
  const auto step = reached_step(status);
  const bool by_progress = policy.resets_budget_on_progress && step && status.restart_step &&
                           *step > *status.restart_step;
  return by_time || by_progress;
}

}  // namespace

FirstFailure failure(const Observed& observed, const Gang& gang, int rank, FailureCause cause) {
  const Pod* pod = gang.by_rank[static_cast<std::size_t>(rank)];
  return {.attempt = observed.job.status.attempt,
          .rank = rank,
          .node = pod != nullptr ? pod->node : std::string{},
          .cause = cause,
          .finished_at = observed.now};
}

std::optional<Failure> find_first_failure(const Observed& observed, const Gang& gang) {
  std::optional<Failure> first;
  int failed_count = 0;
  for (int rank = 0; rank < static_cast<int>(gang.by_rank.size()); ++rank) {
    auto failure = failure_of(observed, gang, rank);
    if (!failure) continue;
    ++failed_count;
    if (!first || blame_order(*failure) < blame_order(*first)) first = std::move(failure);
  }
  if (!first) {
    if (auto late = late_start(observed, gang)) return late;
    auto hang = find_hang(observed, gang);
    return hang ? std::optional(Failure{*std::move(hang), {}, false}) : std::nullopt;
  }
  first->what.collateral_count = failed_count - 1;
  return first;
}

bool is_disruption(const FirstFailure& what) {
  return built_in_action(what) == FailureAction::restart_ignoring_budget;
}

FailureAction action_for(const Observed& observed, const Failure& failure) {
  for (const FailureRule& rule : observed.job.spec.failure.rules) {
    if (matches(rule, failure)) return rule.action;
  }
  if (failure.is_wrong_command) return FailureAction::fail;
  if (is_refused_again(observed.job.status, failure.what, observed.now)) {
    return FailureAction::restart_ignoring_budget;
  }
  return built_in_action(failure.what);
}

JobStatus judge_failure(const Observed& observed, const Gang& gang, const Failure& failure) {
  const RunPolicy& policy = observed.job.spec.run;
  const FailureAction action = action_for(observed, failure);
  JobStatus status = observed.job.status;
  status.succeeded_ranks = gang.succeeded;
  (void)take_progress(status, observed, gang, /*at_once=*/true);
  status.first_failure = failure.what;
  status.reason = reason_word(failure.what.cause);
  status.message = describe_first_failure(failure.what);
  status.phase = Phase::failed;
  if (action == FailureAction::fail) {
    if (!failure.is_wrong_command) return status;
    status.reason = reason::kWrongCommand;
    status.message += "; its command can't be run, and a retry would end the same way";
    return status;
  }
  const bool counts = action != FailureAction::restart_ignoring_budget;
  if (has_earned_a_new_budget(observed, status)) status.restarts_counted = 0;
  if (counts && status.restarts_counted >= policy.max_restarts) {
    if (policy.max_restarts == 0) return status;
    status.reason = reason::kRestartsExhausted;
    status.message +=
        "; runPolicy.maxRestarts, " + std::to_string(policy.max_restarts) + ", is used up";
    return status;
  }
  if (!counts && status.restarts_uncounted >= kUncountedRestartsMax) {
    status.reason = reason::kRestartsExhausted;
    status.message += "; restarted " + std::to_string(status.restarts_uncounted) +
                      " times already without counting";
    return status;
  }
  blame_node(status, failure.what, action, observed.now);
  if (counts) status.restart_step = std::max(status.restart_step, reached_step(status));
  status.phase = Phase::restarting;
  ++status.attempt;
  ++status.restarts;
  ++(counts ? status.restarts_counted : status.restarts_uncounted);
  status.message += counts ? "; restart " + std::to_string(status.restarts_counted) + " of " +
                                 std::to_string(policy.max_restarts)
                           : "; restarting without counting it";
  set_backoff(status, observed, failure.what);
  return status;
}

}  // namespace tj
