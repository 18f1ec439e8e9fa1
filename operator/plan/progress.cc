#include "operator/plan/progress.h"

#include <algorithm>
#include <cmath>

#include "contract/outcome.h"
#include "operator/plan/failure.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

constexpr double kEtaSecondsMax = 1e9;  // thirty years: more is a slip

/// Digits beyond these are noise, and would make each reading another text.
std::optional<double> rounded(const std::optional<double>& value, int digits) {
  if (!value || *value == 0 || !std::isfinite(*value)) return value;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(*value))));
  const double near = std::round(*value * scale) / scale;
  return std::isfinite(near) ? near : *value;
}

/// The news is of the pod that is rank 0 now.
const Progress* document_of(const Observed& observed, const Gang& gang) {
  const Pod* first = gang.by_rank.front();
  const bool is_its = first != nullptr && observed.progress &&
                      observed.progress->pod_uid == first->meta.uid &&
                      observed.progress->document.has_value();
  return is_its ? &*observed.progress->document : nullptr;
}

JobProgress from_document(const Progress& document, int attempt) {
  JobProgress progress{.attempt = attempt,
                       .step = document.step,
                       .total_steps = document.steps,
                       .phase = {},
                       .eta_seconds = {},
                       .loss = rounded(document.loss, 6),
                       .tokens_per_second = rounded(document.tokens_per_second, 4),
                       .mfu = rounded(document.mfu, 3),
                       .updated_at = {}};
  if (document.phase.size() <= kProgressPhaseBytesMax) progress.phase = document.phase;
  const auto& eta = document.eta_seconds;
  const bool is_sane = eta && *eta >= 0 && *eta < kEtaSecondsMax;
  if (is_sane) progress.eta_seconds = static_cast<long long>(*eta);
  return progress;
}

/// What rank 0's trainer has put into its termination message, once it has ended.
std::optional<Outcome> last_words(const Gang& gang, int attempt) {
  const Pod* first = gang.by_rank.front();
  if (first == nullptr || !first->exit) return std::nullopt;
  const auto outcome = from_termination_message(first->exit->message);
  return outcome && outcome->attempt == attempt ? std::optional(*outcome) : std::nullopt;
}

/// Of what the status has, what rank 0 serves and, if they are later, its last words.
std::optional<JobProgress> latest_progress(const JobStatus& status, const Progress* document,
                                           const std::optional<Outcome>& words) {
  const bool is_known = status.progress && status.progress->attempt == status.attempt;
  std::optional<JobProgress> latest = is_known ? status.progress : std::nullopt;
  if (document != nullptr) latest = from_document(*document, status.attempt);
  if (words && words->step && (!latest || *words->step > latest->step)) {
    if (!latest) latest = JobProgress{.attempt = status.attempt};
    latest->step = *words->step;
    latest->eta_seconds.reset();
  }
  return latest;
}

std::optional<LastCheckpoint> latest_checkpoint(const Observed& observed, const Progress* document,
                                                const std::optional<Outcome>& words) {
  const auto& known = observed.job.status.last_checkpoint;
  std::optional<SavedStep> told = document != nullptr ? document->last_checkpoint : std::nullopt;
  if (words && words->last_checkpoint) told = words->last_checkpoint;
  if (!told) return known;
  const SavedStep& saved = *told;
  LastCheckpoint latest{.step = saved.step, .path = {}, .time = observed.now};
  if (saved.path.size() <= kCheckpointPathBytesMax) latest.path = saved.path;
  const bool is_same = known && known->step == latest.step && known->path == latest.path;
  return is_same ? known : latest;
}

bool is_same_place(const std::optional<JobProgress>& left,
                   const std::optional<JobProgress>& right) {
  if (!left || !right) return left.has_value() == right.has_value();
  return left->attempt == right->attempt && left->step == right->step &&
         left->total_steps == right->total_steps && left->phase == right->phase;
}

bool is_at_end(const JobProgress& progress) {
  const bool has_all_steps = progress.total_steps > 0 && progress.step >= progress.total_steps;
  return has_all_steps || progress.phase == "end";
}

/// The rank that has stood still longest, as rank 0 sees it; nonsense is passed over.
const StalledRank* longest_stalled(const Progress& document, const Gang& gang) {
  const StalledRank* longest = nullptr;
  for (const StalledRank& each : document.stalled) {
    const bool exists = each.rank >= 0 && static_cast<std::size_t>(each.rank) < gang.by_rank.size();
    const bool may_stall = exists && !gang.succeeded.contains(each.rank);
    if (may_stall && (longest == nullptr || each.seconds > longest->seconds)) longest = &each;
  }
  return longest;
}

std::string whole(double seconds) {
  return std::to_string(static_cast<long long>(std::clamp(seconds, 0.0, kEtaSecondsMax)));
}

std::string in_phase(const std::string& phase) {
  return phase.empty() || phase.size() > kProgressPhaseBytesMax ? "" : " in phase " + phase;
}

/// `message` goes on after the worker's name.
FirstFailure hang_of(const Observed& observed, const Gang& gang, int rank,
                     const std::string& message) {
  FirstFailure hang = failure(observed, gang, rank, FailureCause::hung);
  hang.reason = reason::kHung;
  hang.message = "worker " + std::to_string(rank);
  if (!hang.node.empty()) hang.message += " on node " + hang.node;
  hang.message += message;
  return hang;
}

FirstFailure stalled_by_its_own_report(const Observed& observed, const Gang& gang,
                                       const Progress& document) {
  const StalledRank* stalled = longest_stalled(document, gang);
  const double seconds = stalled != nullptr ? stalled->seconds : document.heartbeat_age_seconds;
  const std::string& phase = stalled != nullptr ? stalled->phase : document.phase;
  FirstFailure hang = hang_of(observed, gang, stalled != nullptr ? stalled->rank : 0,
                              " has not moved for " + whole(seconds) + " s" + in_phase(phase) +
                                  ", after step " + std::to_string(document.step));
  hang.step = document.step;
  return hang;
}

}  // namespace

std::optional<TimePoint> take_progress(JobStatus& status, const Observed& observed,
                                       const Gang& gang, bool at_once) {
  const JobStatus& before = observed.job.status;
  const Progress* document = document_of(observed, gang);
  const auto words = last_words(gang, before.attempt);
  auto latest = latest_progress(before, document, words);
  const auto checkpoint = latest_checkpoint(observed, document, words);
  if (!latest) return std::nullopt;
  const bool is_news =
      !is_same_place(latest, before.progress) || checkpoint != before.last_checkpoint;
  if (!is_news) return std::nullopt;
  const auto& written = before.progress;
  const bool is_first = !written || written->attempt != latest->attempt || !written->updated_at;
  const bool is_last = is_at_end(*latest) && !(written && is_at_end(*written));
  // A time that is still to come is of another operator's clock.
  const bool is_due = is_first || is_last || *written->updated_at > observed.now ||
                      observed.now >= *written->updated_at + observed.progress_interval;
  if (!at_once && !is_due) return *written->updated_at + observed.progress_interval;
  latest->updated_at = observed.now;
  status.progress = std::move(latest);
  status.last_checkpoint = checkpoint;
  return std::nullopt;
}

std::optional<FirstFailure> find_hang(const Observed& observed, const Gang& gang) {
  const auto limit = observed.job.spec.run.heartbeat_timeout;
  const JobStatus& status = observed.job.status;
  const Pod* first = gang.by_rank.front();
  // Who waits for a worker that has not started does not hang.
  const bool have_all_run =
      limit && status.running_time && observed.now >= *status.running_time + *limit;
  if (!have_all_run || first == nullptr || !observed.progress) return std::nullopt;
  const bool may_answer = first->phase == PodPhase::running && !has_ended(*first) &&
                          !first->meta.deletion_time && !silent_since(observed, *first);
  if (!may_answer || observed.progress->pod_uid != first->meta.uid) return std::nullopt;
  const Progress* document = document_of(observed, gang);
  const bool was_read =
      document != nullptr || (status.progress && status.progress->attempt == status.attempt);
  if (was_read && observed.progress->unreadable_for > *limit) {
    const std::chrono::duration<double> silence = observed.progress->unreadable_for;
    return hang_of(observed, gang, 0,
                   " has not said how it is doing for " + whole(silence.count()) + " s");
  }
  const bool is_read = document != nullptr && observed.progress->unreadable_for.count() == 0;
  const bool is_late =
      is_read && document->heartbeat_age_seconds > std::chrono::duration<double>(*limit).count();
  if (is_late) return stalled_by_its_own_report(observed, gang, *document);
  return std::nullopt;
}

std::optional<long long> reached_step(const JobStatus& status) {
  if (status.last_checkpoint) return status.last_checkpoint->step;
  const bool is_of_attempt = status.progress && status.progress->attempt == status.attempt;
  return is_of_attempt ? std::optional(status.progress->step) : std::nullopt;
}

}  // namespace tj
