// What keeps the containers of workers from running, once they have a node: images, what they
// refer to, volumes, init containers, and pods of an earlier attempt that do not go.
#include <algorithm>
#include <array>
#include <functional>

#include "cli/explain/rules.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using namespace read;
using Seen = std::vector<Sighting>;

/// A pod, and what holds it up, from its containers and its events.
struct Held {
  const PodFacts* pod = nullptr;
  std::string reason;
  std::string message;
  std::optional<TimePoint> time;
};

/// A container's reason alternates and says little where an event has the cause: both are told.
std::vector<Held> held_up(const Evidence& evidence) {
  constexpr std::array kEvents = {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox",
                                  "Failed"};
  std::vector<Held> all;
  for (const PodFacts* facts : evidence.waiting()) {
    const Pod& pod = facts->pod;
    if (pod.node.empty()) continue;
    if (!pod.waiting_reason.empty())
      all.push_back({facts, pod.waiting_reason, pod.waiting_message, pod.meta.creation_time});
    for (const char* reason : kEvents) {
      const auto* event = evidence.event_of("Pod", pod.meta.name, reason);
      if (event != nullptr && pod.waiting_reason.empty())
        all.push_back({facts, event->reason, event->message, event->time});
    }
  }
  return all;
}

struct Hold {
  const char* cause;
  std::array<const char*, 4> reasons;  // of the container or the event; nullptr: fewer
  std::array<const char*, 4> words;    // any of them in the message; all nullptr: whatever it says
  const char* sentence;
  const char* remedy;
};
constexpr std::array<const char*, 4> kPulls = {"ErrImagePull", "ImagePullBackOff", "Failed",
                                               "ErrImageNeverPull"};
constexpr std::array<const char*, 4> kMounts = {"FailedMount", "FailedAttachVolume",
                                                "CreateContainerConfigError", nullptr};
// The first that matches is the cause.
constexpr std::array kHolds = {
    Hold{"ImageNotFound",
         kPulls,
         {"not found", "manifest unknown", "does not exist", "ErrImageNeverPull"},
         "the image is not in the registry",
         "correct image in the template (suspend the job, change it, resume it); is the tag "
         "pushed?"},
    Hold{"ImageDenied",
         kPulls,
         {"nauthorized", "denied", "forbidden", "no basic auth"},
         "the registry refuses the image",
         "imagePullSecrets of the template must name a Secret of {ns} with rights to pull it"},
    Hold{"RegistryUnreachable",
         kPulls,
         {"no such host", "timeout", "connection refused", "dial tcp"},
         "the node can't reach the registry",
         "is the registry's name right, and can the nodes resolve and reach it (proxy, firewall)?"},
    Hold{"ImagePullFailed",
         {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", nullptr},
         {},
         "the image can't be pulled",
         "kubectl -n {ns} describe pod has the runtime's words; is there room on the node's disk?"},
    Hold{"ImageNameInvalid",
         {"InvalidImageName", "ImageInspectError", nullptr, nullptr},
         {},
         "the image's name is not one",
         "correct image in the template (suspend the job, change it, resume it)"},
    Hold{"ConfigMapMissing",
         kMounts,
         {"configmap \"", "configmaps \"", "couldn't find key", "ConfigMap"},
         "a ConfigMap of the template, or a key of it, is not there",
         "create it in {ns}, or correct its name; the workers start by themselves then"},
    Hold{"SecretMissing",
         kMounts,
         {"secret \"", "secrets \"", "Secret", nullptr},
         "a Secret of the template is not there",
         "create it in {ns}, or correct its name; the workers start by themselves then"},
    Hold{"VolumeNotMounted",
         {"FailedMount", "FailedAttachVolume", nullptr, nullptr},
         {},
         "a volume can't be mounted",
         "does the path or the server exist, seen from that node (hostPath with a type, NFS)? The "
         "message is the kubelet's own"},
    Hold{"SandboxFailed",
         {"FailedCreatePodSandBox", nullptr, nullptr, nullptr},
         {},
         "the node can't set up the pod's network or sandbox",
         "a fault of the node: look at its CNI plug-in and container runtime; kubectl cordon NODE "
         "keeps the job off it"},
    Hold{"ContainerNotCreated",
         {"CreateContainerError", "RunContainerError", "CreateContainerConfigError", "StartError"},
         {},
         "the container can't be created",
         "the message is the runtime's own: a wrong mount, a device or a securityContext of the "
         "template"},
    Hold{"InitContainerCrashing",
         {"CrashLoopBackOff", nullptr, nullptr, nullptr},
         {},
         "a container ends again and again before the worker begins",
         "tj logs {job} -c NAME --previous shows the last words of that container"},
};

template <typename Words>
bool any_in(const Words& words, const std::function<bool(const char*)>& is) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* each) { return each != nullptr && is(each); });
}

bool matches(const Hold& hold, const Held& held) {
  const bool is_reason =
      any_in(hold.reasons, [&](const char* reason) { return held.reason == reason; });
  // Of events with the reason "Failed" only those of images are meant.
  const bool is_of_image = held.reason != "Failed" || contains(held.message, "image");
  const bool is_any = std::all_of(hold.words.begin(), hold.words.end(),
                                  [](const char* words) { return words == nullptr; });
  const bool says = is_any || any_in(hold.words, [&](const char* words) {
                      return contains(held.message, words) || held.reason == words;
                    });
  return is_reason && is_of_image && says;
}

const Hold* hold_of(const Held& held) {
  const auto found = std::find_if(kHolds.begin(), kHolds.end(),
                                  [&](const Hold& hold) { return matches(hold, held); });
  return found == kHolds.end() ? nullptr : &*found;
}

Seen see_hold(const Evidence& evidence, const Hold& hold) {
  std::vector<const PodFacts*> pods;
  RankSet ranks;
  std::optional<Held> first;
  for (const Held& held : held_up(evidence)) {
    if (hold_of(held) != &hold || ranks.contains(held.pod->pod.worker_index)) continue;
    pods.push_back(held.pod);
    ranks.insert(held.pod->pod.worker_index);
    if (!first) first = held;
  }
  if (!first) return {};
  std::string what = std::string(hold.sentence) + ", for " + workers_text(ranks) + " on node " +
                     first->pod->pod.node;
  if (!first->message.empty()) what += ": " + first->message;
  return {{pods_text(pods), what, first->time}};
}

/// The pod's trimmed form has the exit of one, and not which.
Seen init_container_failed(const Evidence& evidence) {
  Seen seen;
  for (const PodFacts& facts : evidence.pods) {
    for (const json& status :
         array_at(object_at(facts.object, "status"), "initContainerStatuses")) {
      const json& ended = object_at(object_at(status, "state"), "terminated");
      const int code = number_at(ended, "exitCode");
      if (code == 0) continue;
      const std::string message = string_at(ended, "message");
      seen.push_back({"pod " + facts.pod.meta.name,
                      "init container " + string_at(status, "name") + " ended with exit code " +
                          std::to_string(code) + (message.empty() ? "" : ": " + message),
                      time_at(ended, "finishedAt")});
    }
  }
  if (seen.size() > 1) seen.resize(1);  // the first rank stands for all
  return seen;
}

Seen init_container_running(const Evidence& evidence) {
  constexpr std::chrono::seconds kLong{60};
  for (const PodFacts* facts : evidence.waiting()) {
    for (const json& status :
         array_at(object_at(facts->object, "status"), "initContainerStatuses")) {
      const auto since = time_at(object_at(object_at(status, "state"), "running"), "startedAt");
      if (!since || evidence.now < *since + kLong || bool_at(status, "started", false)) continue;
      return {{"pod " + facts->pod.meta.name,
               "init container " + string_at(status, "name") + " of " + "worker " +
                   std::to_string(facts->pod.worker_index) + " still runs",
               since}};
    }
  }
  return {};
}

Seen stuck_terminating(const Evidence& evidence) {
  constexpr std::chrono::seconds kLate{60};
  Seen seen;
  for (const PodFacts& facts : evidence.pods) {
    const auto& due = facts.pod.meta.deletion_time;  // the end of its grace
    if (!due || evidence.now < *due + kLate) continue;
    const json& finalizers = array_at(object_at(facts.object, "metadata"), "finalizers");
    const std::string why = finalizers.empty()
                                ? "its node does not answer"
                                : "the finalizer " + read::text_of(finalizers[0]) + " holds it";
    seen.push_back({"pod " + facts.pod.meta.name,
                    "it should have ended, and is still there" +
                        (facts.pod.node.empty() ? "" : " on node " + facts.pod.node) + ": " + why,
                    due});
  }
  return seen;
}

}  // namespace

Rules start_rules() {
  Rules rules = {
      {"StuckTerminating", Stage::placement,
       "of a dead node: the operator removes it by force after nodeLoss.forceDeleteSeconds; of a "
       "finalizer: ask its owner",
       stuck_terminating},
      {"InitContainerFailed", Stage::failure,
       "tj logs {job} -c NAME shows what that container said", init_container_failed},
      {"InitContainerRunning", Stage::start,
       "tj logs {job} -c NAME shows what it does; the worker begins when it has ended with 0",
       init_container_running},
  };
  for (const Hold& hold : kHolds) {
    rules.push_back({hold.cause, Stage::start, hold.remedy,
                     [&hold](const Evidence& evidence) { return see_hold(evidence, hold); }});
  }
  return rules;
}

}  // namespace tj
