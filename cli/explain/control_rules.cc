// What keeps a job's pods from being made: the operator, the spec, and what the API server refuses.
#include <algorithm>
#include <array>

#include "cli/explain/rules.h"
#include "operator/plan/conditions.h"
#include "operator/plan/plan.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

/// A new job's first status comes within two seconds; an operator that starts anew takes longer.
constexpr std::chrono::seconds kFirstLook{30};
constexpr std::chrono::seconds kOwnTurn{30};

using Seen = std::vector<Sighting>;

std::string job_text(const Evidence& evidence) { return "job " + evidence.job.meta.name; }

bool is_over(const Evidence& evidence) { return is_terminal(evidence.job.status.phase); }

/// When the job came to be in the reason that it is in, by its events.
std::optional<TimePoint> since_reason(const Evidence& evidence) {
  const auto* event =
      evidence.event_of("TrainingJob", evidence.job.meta.name, evidence.job.status.reason);
  return event != nullptr ? event->time : std::nullopt;
}

Seen see_status(const Evidence& evidence, const std::string& what) {
  return {{job_text(evidence), what, since_reason(evidence)}};
}

Seen operator_silent(const Evidence& evidence) {
  const TrainingJob& job = evidence.job;
  if (is_over(evidence) || is_managed_elsewhere(job)) return {};
  const auto& created = job.meta.creation_time;
  if (created && evidence.now < *created + kFirstLook) return {};
  if (job.status.reason.empty()) {
    return {
        {job_text(evidence), "no operator has written its status since it was created", created}};
  }
  if (job.status.observed_generation >= job.meta.generation) return {};
  return {{job_text(evidence),
           "the operator has not looked at its last change: generation " +
               std::to_string(job.meta.generation) + ", observed " +
               std::to_string(job.status.observed_generation),
           std::nullopt}};
}

Seen managed_elsewhere(const Evidence& evidence) {
  if (!is_managed_elsewhere(evidence.job)) return {};
  return {{job_text(evidence),
           "runPolicy.managedBy names another controller, " + evidence.job.spec.run.managed_by,
           evidence.job.meta.creation_time}};
}

Seen invalid_spec(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  if (const Condition* invalid = find_invalid_spec(status))
    return {{job_text(evidence), invalid->message, invalid->last_transition_time}};
  if (status.reason != reason::kInvalid) return {};
  return see_status(evidence, status.message);
}

Seen suspended(const Evidence& evidence) {
  if (!evidence.job.spec.run.suspend || is_over(evidence)) return {};
  return see_status(evidence, "runPolicy.suspend is true: it has no pods until that is false");
}

Seen name_conflict(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  if (status.reason != reason::kNameConflict) return {};
  return see_status(evidence, status.message);
}

Seen creating(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const bool waits = status.reason == reason::kCreatingWorkers && status.start_time &&
                     evidence.now >= *status.start_time + kOwnTurn;
  if (!waits) return {};
  return {
      {job_text(evidence),
       "its pods are still to be created: the gangs of a namespace are created one after another",
       status.start_time}};
}

Seen operator_bug(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  if (status.reason != reason::kInternalError) return {};
  return see_status(evidence, status.message);
}

/// What the API server says when it refuses to create something, by what stood in the way
/// (plugin/pkg/admission/{resourcequota,limitranger}, pod-security-admission, apiserver webhooks).
struct Refused {
  const char* cause;
  std::array<const char*, 3> words;  // any of them
  const char* remedy;
};
constexpr std::array kRefused = {
    Refused{"QuotaExceeded",
            {"exceeded quota", "failed quota", "must specify"},
            "kubectl -n {ns} describe quota shows what is used; ask for less, end other jobs, or "
            "have the quota raised. The operator tries again at least once a minute"},
    Refused{"LimitRange",
            {" usage per Container", " usage per Pod", "limit to request ratio"},
            "kubectl -n {ns} describe limitrange shows the bounds; change resources of the "
            "template (suspend the job first)"},
    Refused{
        "PodSecurity",
        {"violates PodSecurity", "unable to validate against any security", "PodSecurityPolicy"},
        "set the securityContext that the message names in the template, or have the namespace's "
        "Pod Security level changed"},
    Refused{"AdmissionDenied",
            {"admission webhook", "ValidatingAdmissionPolicy", "denied the request"},
            "the message is the policy's own: change the template as it says, or ask who runs that "
            "policy"},
    Refused{"RightMissing",
            {" cannot create resource", " cannot get resource", " cannot update resource"},
            "the operator's account lacks a right: install its roles again (docs/installing.md, "
            "Rights of the operator)"},
};

/// The first that matches; its size: none does.
std::size_t refused_by(const std::string& message) {
  const auto found = std::find_if(kRefused.begin(), kRefused.end(), [&](const Refused& each) {
    return std::any_of(each.words.begin(), each.words.end(),
                       [&](const char* words) { return contains(message, words); });
  });
  return static_cast<std::size_t>(found - kRefused.begin());
}

Seen refused(const Evidence& evidence, std::size_t by) {
  const JobStatus& status = evidence.job.status;
  const bool is_it = status.reason == reason::kCreateFailed && refused_by(status.message) == by;
  return is_it ? see_status(evidence, status.message) : Seen{};
}

}  // namespace

Rules control_rules() {
  Rules rules = {
      {"OperatorSilent", Stage::control,
       "is the operator running? kubectl get pods -A -l "
       "kubebrain.io/component=trainingjob-operator; does it serve this namespace?",
       operator_silent},
      {"ManagedElsewhere", Stage::control,
       "ask that controller (a queue?); this operator leaves the job alone", managed_elsewhere},
      {"InvalidSpec", Stage::control,
       "mend the field that is named; tj validate -f checks a manifest before it is applied",
       invalid_spec},
      {"Suspended", Stage::control,
       "tj resume {job}, unless a queue or a person holds it back on purpose", suspended},
      {"NameConflict", Stage::control,
       "delete the object that is named, wait until it has gone, or choose another name",
       name_conflict},
      {"CreatingWorkers", Stage::control,
       "it comes to its turn by itself; tj list shows the jobs before it", creating},
      {"OperatorBug", Stage::control,
       "a bug of the operator: report the message; kubectl logs of the operator has more",
       operator_bug},
  };
  for (std::size_t i = 0; i < kRefused.size(); ++i) {
    rules.push_back({kRefused[i].cause, Stage::control, kRefused[i].remedy,
                     [i](const Evidence& evidence) { return refused(evidence, i); }});
  }
  rules.push_back(
      {"CreateRefused", Stage::control,
       "the message is the API server's own; the operator tries again at least once a minute",
       [](const Evidence& evidence) { return refused(evidence, kRefused.size()); }});
  return rules;
}

}  // namespace tj
