#include "tests/sim/invariants.h"

#include <algorithm>

#include "contract/names.h"

namespace tj::sim {
namespace {

std::string about(const PodFacts& pod) {
  return "pod " + to_string(pod.key) + " uid " + pod.uid.substr(24) + " rank " +
         std::to_string(pod.rank) + " attempt " + std::to_string(pod.attempt) + " of job " +
         (pod.job_uid.empty() ? "-" : pod.job_uid.substr(24));
}

std::string about(const JobFacts& job) {
  return "job " + to_string(job.key) + " uid " + job.uid.substr(24) + " phase " + job.phase +
         " reason " + job.reason + " attempt " + std::to_string(job.attempt) + " \"" + job.message +
         "\"";
}

bool is_doomed(const PodFacts& pod, const JobFacts* job) {
  if (job == nullptr || job->is_gone || job->is_marked) return true;
  return is_terminal(*job) || job->phase == "Suspended" || pod.attempt < job->attempt;
}

}  // namespace

void Invariants::report(const std::string& what) {
  if (!violation_) violation_ = what;
}

void Invariants::require(bool holds, const char* invariant, const std::string& subject) {
  if (!holds) report(std::string(invariant) + ": " + subject);
}

void Invariants::look(const ObjectStore& store, Actor actor) {
  actor_ = actor;
  const auto& history = store.history();
  auto change = history.end();
  while (change != history.begin() && std::prev(change)->version > seen_version_) --change;
  for (; change != history.end(); ++change) {
    seen_version_ = change->version;
    const std::string uid = change->object->at("metadata").at("uid").get<std::string>();
    if (change->resource == Resource::pods) {
      const PodFacts* known = mirror_.pod(uid);
      const auto before = known != nullptr ? std::optional(*known) : std::nullopt;
      mirror_.apply(*change);
      check_pod(before ? &*before : nullptr, read_pod(*change->object), *change);
    } else if (change->resource == Resource::nodes) {
      mirror_.apply(*change);
    } else if (change->resource == Resource::training_jobs) {
      const JobFacts* known = mirror_.job(uid);
      const auto before = known != nullptr ? std::optional(*known) : std::nullopt;
      mirror_.apply(*change);
      check_job(before ? &*before : nullptr, *mirror_.job(uid), *change);
    }
  }
}

void Invariants::check_pod(const PodFacts* before, const PodFacts& after,
                           const ObjectChange& change) {
  if (after.job_uid.empty()) {
    return require(actor_ != Actor::operators, "a foreign pod is left alone", about(after));
  }
  if (before == nullptr) return check_new_pod(after);
  const bool is_removed = change.type == ChangeType::deleted;
  const bool is_newly_marked = after.is_marked && !before->is_marked;
  if (actor_ == Actor::operators && (is_removed || is_newly_marked)) check_removal(*before);
  const bool is_abandoned =
      is_removed && actor_ != Actor::world && !before->node.empty() && !before->is_done;
  if (is_abandoned) abandoned_[{before->job_uid, before->rank}] = before->attempt;
}

void Invariants::check_new_pod(const PodFacts& pod) {
  require(actor_ == Actor::operators, "only an operator makes a job's pods", about(pod));
  require(pod.key.name.ends_with("-worker-" + std::to_string(pod.rank)) && pod.env_rank == pod.rank,
          "a pod's name, label and RANK agree", about(pod));
  require(pod.env_attempt == pod.attempt && pod.env_job_uid == pod.job_uid,
          "a pod's label, owner and environment agree", about(pod));
  require(pod.rank >= 0 && pod.rank < pod.world_size, "a rank is below its WORLD_SIZE", about(pod));
  const auto live =
      std::count_if(mirror_.pods().begin(), mirror_.pods().end(), [&](const auto& entry) {
        const PodFacts& other = entry.second;
        return other.job_uid == pod.job_uid && other.rank == pod.rank && !other.is_done;
      });
  require(live <= 1, "at most one live pod per rank", about(pod));

  const auto [found, is_first] = attempts_.try_emplace({pod.job_uid, pod.attempt},
                                                       AttemptFacts{pod.world_size, pod.made_from});
  require(found->second.world_size == pod.world_size, "one WORLD_SIZE in one attempt",
          about(pod) + " WORLD_SIZE " + std::to_string(pod.world_size) + " beside " +
              std::to_string(found->second.world_size));
  require(found->second.made_from == pod.made_from, "one template in one attempt",
          about(pod) + " from " + pod.made_from + " beside " + found->second.made_from);
  const JobFacts* job = mirror_.job(pod.job_uid);
  const auto abandoned = abandoned_.find({pod.job_uid, pod.rank});
  const bool is_fenced = abandoned == abandoned_.end() || abandoned->second < pod.attempt;
  require(is_fenced || is_doomed(pod, job),
          "what may still run on a silent node is fenced by its attempt", about(pod));
  require(job != nullptr, "a pod's job has existed", about(pod));
  if (job == nullptr || job->is_gone) return;
  require(pod.attempt <= job->attempt, "an attempt is in the status before its first pod",
          about(pod) + "; " + about(*job));
}

void Invariants::check_removal(const PodFacts& pod) {
  const JobFacts* job = mirror_.job(pod.job_uid);
  require(pod.is_marked || is_doomed(pod, job), "the verdict is in the status before a deletion",
          about(pod) + (job != nullptr ? "; " + about(*job) : ""));
}

void Invariants::check_job(const JobFacts* before, const JobFacts& after,
                           const ObjectChange& change) {
  int& restarts_max = restarts_max_[after.uid];
  restarts_max = std::max(restarts_max, after.max_restarts);
  if (change.type == ChangeType::deleted) {
    const bool is_right = actor_ == Actor::world || (is_terminal(after) && after.has_ttl);
    return require(is_right, "an operator deletes only what has finished and has a time to live",
                   about(after));
  }
  if (before == nullptr) return;
  check_progress(*before, after);
  if (is_terminal(*before)) check_final(*before, after);
  if (is_terminal(after))
    require(!after.completion_time.empty(), "an end has a time", about(after));
}

void Invariants::check_progress(const JobFacts& before, const JobFacts& after) {
  require(after.attempt >= before.attempt, "the attempt never decreases",
          about(after) + " after attempt " + std::to_string(before.attempt));
  require(after.restarts >= before.restarts, "restarts never go back",
          about(after) + " restarts " + std::to_string(after.restarts) + " after " +
              std::to_string(before.restarts));
  require(after.observed_generation >= before.observed_generation &&
              after.observed_generation <= after.generation,
          "observedGeneration goes on, and not ahead", about(after));
  require(after.restarts_counted <= restarts_max_[after.uid], "restartsCounted <= maxRestarts",
          about(after) + " restartsCounted " + std::to_string(after.restarts_counted));
  const bool has_come_further =
      after.resets_on_progress && after.reached_step > before.restart_step;
  require(after.restarts_counted >= before.restarts_counted || after.may_reset_budget ||
              has_come_further,
          "restartsCounted never goes back without cause", about(after));
  require(after.restarts_counted + after.restarts_uncounted <= after.restarts,
          "a restart counts or does not", about(after));
  const bool is_restart = after.restarts > before.restarts;
  require(!is_restart || !before.succeeded_ranks.contains(after.failed_rank),
          "a rank that has succeeded does not fail", about(after));
  const bool keeps_ranks =
      after.attempt != before.attempt ||
      std::includes(after.succeeded_ranks.begin(), after.succeeded_ranks.end(),
                    before.succeeded_ranks.begin(), before.succeeded_ranks.end());
  require(keeps_ranks, "a rank that has succeeded stays so", about(after));
  require(after.progress_attempt <= after.attempt, "progress is of no later attempt", about(after));
  const bool is_hang = after.restarts > before.restarts && after.reason == "Hung";
  require(!is_hang || after.looks_for_hangs, "a hang is concluded only where it is looked for",
          about(after));
  require(after.restarts <= kRestartsMax, "restarts have a bound", about(after));
  require(after.restarts <= after.attempt, "each restart is an attempt", about(after));
}

void Invariants::check_final(const JobFacts& before, const JobFacts& after) {
  const bool is_same = before.phase == after.phase && before.reason == after.reason &&
                       before.completion_time == after.completion_time &&
                       before.first_failure == after.first_failure &&
                       before.attempt == after.attempt && before.restarts == after.restarts;
  require(is_same, "a terminal state is final", about(after) + "; before: " + about(before));
}

void Invariants::look_at_rest() {
  for (const auto& [uid, pod] : mirror_.pods()) {
    if (pod.job_uid.empty()) continue;
    const JobFacts* job = mirror_.job(pod.job_uid);
    // Asked to go by the collector, on a node that can't answer: no operator's any more.
    const bool is_stranded = pod.is_marked && mirror_.silent_nodes().contains(pod.node);
    require(is_stranded || (job != nullptr && !job->is_gone), "no orphan is left", about(pod));
  }
  for (const auto& [uid, job] : mirror_.jobs()) {
    if (!job.is_gone) check_job_at_rest(job);
  }
}

void Invariants::check_job_at_rest(const JobFacts& job) {
  std::vector<const PodFacts*> pods;
  for (const auto& [uid, pod] : mirror_.pods()) {
    if (pod.job_uid == job.uid) pods.push_back(&pod);
  }
  const auto live = std::count_if(pods.begin(), pods.end(), [](const PodFacts* pod) {
    return !pod->is_done && !pod->has_exit;
  });
  require(live == job.active, "the status counts the live pods",
          about(job) + " active " + std::to_string(job.active) + " of " + std::to_string(live));
  require(job.observed_generation == job.generation, "the newest spec was seen", about(job));
  if (is_terminal(job)) {
    const bool may_run = job.clean_pods == "None";
    require(may_run || live == 0, "a finished job has no live pod", about(job));
    require(job.clean_pods != "All" || pods.empty(), "cleanPodPolicy All leaves no pod",
            about(job));
    return;
  }
  require(job.is_suspended == (job.phase == "Suspended"), "suspended as the spec says", about(job));
  if (job.is_suspended) return require(pods.empty(), "a suspended job has no pod", about(job));
  for (const PodFacts* pod : pods) {
    const bool has_ended = pod->is_done || pod->has_exit;
    const bool may_stay = has_ended && mirror_.silent_nodes().contains(pod->node);
    require(pod->attempt == job.attempt && (!pod->is_marked || may_stay),
            "no pod of an old attempt is left", about(*pod) + "; " + about(job));
  }
  check_gang_at_rest(job, pods);
}

void Invariants::check_gang_at_rest(const JobFacts& job, const std::vector<const PodFacts*>& pods) {
  std::set<int> started = job.succeeded_ranks;  // with a pod or without
  for (const PodFacts* pod : pods) {
    const bool has_started = pod->phase == "Running" || pod->is_done || pod->has_exit;
    if (has_started) started.insert(pod->rank);
  }
  if (static_cast<int>(started.size()) == job.replicas) {
    require(job.phase == "Running", "a gang that runs is said to run", about(job));
    for (const PodFacts* pod : pods) {
      require(pod->world_size == job.replicas, "a running gang has the size of the spec",
              about(*pod) + "; " + about(job));
    }
    return;
  }
  const bool is_waiting =
      job.phase == "Pending" || job.phase == "Starting" || job.phase == "Restarting";
  require(is_waiting, "a gang that does not run is waiting", about(job));
  require(!job.message.empty(), "who waits says for what", about(job));
}

}  // namespace tj::sim
