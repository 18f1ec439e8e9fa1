// What keeps workers from a node, in the scheduler's words (pkg/scheduler/framework/plugins: each
// plug-in's reasons). One message may name several things: each is a cause.
#include <algorithm>
#include <array>

#include "cli/explain/rules.h"

namespace tj {
namespace {

using Seen = std::vector<Sighting>;

struct Place {
  const char* cause;
  std::array<const char*, 3> words;  // any of them; nullptr: fewer
  const char* sentence;
  const char* remedy;
};
constexpr std::array kPlaces = {
    Place{"NotEnoughGpu",
          {"Insufficient nvidia.com/gpu", "Insufficient amd.com/gpu", "Insufficient gpu.intel.com"},
          "no node has enough GPUs free",
          "ask for fewer GPUs per worker, wait for other jobs, or add nodes; a node without the "
          "GPU's device plug-in has none to give"},
    Place{"NotEnoughCpu",
          {"Insufficient cpu", nullptr, nullptr},
          "no node has enough CPU free",
          "lower resources.requests.cpu of the template, wait for other jobs, or add nodes"},
    Place{"NotEnoughMemory",
          {"Insufficient memory", nullptr, nullptr},
          "no node has enough memory free",
          "lower resources.requests.memory of the template, wait for other jobs, or add nodes"},
    Place{"NotEnoughStorage",
          {"Insufficient ephemeral-storage", "Insufficient hugepages", "Insufficient rdma"},
          "no node has enough of another resource free",
          "lower that request of the template, or add nodes that have it"},
    Place{"TooManyPods",
          {"Too many pods", nullptr, nullptr},
          "the nodes run as many pods as they may",
          "end other pods, or add nodes"},
    Place{"TaintNotTolerated",
          {"untolerated taint", "had taint", nullptr},
          "nodes are kept for others by a taint",
          "add a toleration for the taint that is named to the template, or take the taint off"},
    Place{"AffinityMismatch",
          {"didn't match Pod's node affinity/selector", "pod anti-affinity rules",
           "pod affinity rules"},
          "nodes do not match the template's nodeSelector or affinity",
          "kubectl get nodes --show-labels; change nodeSelector or affinity of the template, or "
          "label the nodes"},
    Place{"NodeUnschedulable",
          {"were unschedulable", "node(s) were not ready", "were out of disk"},
          "nodes are cordoned",
          "kubectl uncordon NODE, once whoever cordoned it agrees"},
    Place{"VolumeUnbound",
          {"unbound immediate PersistentVolumeClaims", "persistentvolumeclaim \"",
           "didn't find available persistent volumes"},
          "a PersistentVolumeClaim of the template is missing or not bound",
          "kubectl -n {ns} get pvc; kubectl -n {ns} describe pvc says why it is not bound (no such "
          "StorageClass, no capacity)"},
    Place{"VolumeElsewhere",
          {"volume node affinity conflict", "exceed max volume count", nullptr},
          "a volume of the template can only be used on other nodes",
          "the volume's zone or node and the template's nodeSelector must agree; a volume for "
          "several nodes must be ReadWriteMany"},
    Place{
        "TopologySpread",
        {"pod topology spread constraints", "host ports", "free ports for the requested pod ports"},
        "the workers may not share the nodes that are left",
        "fewer workers, more nodes, or a weaker topologySpreadConstraint; with hostPort one worker "
        "per node"},
};

bool says(const Place& place, const std::string& message) {
  return std::any_of(place.words.begin(), place.words.end(), [&](const char* words) {
    return words != nullptr && contains(message, words);
  });
}

/// Of the pods that wait for this and no node: one sighting, with the scheduler's own words.
template <typename Is>
Seen see_unplaced(const Evidence& evidence, const std::string& sentence, Is is) {
  std::vector<const PodFacts*> found;
  RankSet ranks;
  for (const PodFacts* facts : evidence.waiting()) {
    const bool is_it = is(facts->pod.waiting_reason, facts->pod.waiting_message);
    if (!facts->pod.node.empty() || !is_it) continue;
    found.push_back(facts);
    ranks.insert(facts->pod.worker_index);
  }
  if (found.empty()) return {};
  const PodFacts& first = *found.front();
  std::string what = sentence + ", for " + workers_text(ranks);
  if (!first.pod.waiting_message.empty()) what += ": " + first.pod.waiting_message;
  const auto since =
      first.pod.waiting_since ? first.pod.waiting_since : first.pod.meta.creation_time;
  return {{pods_text(found), what, since}};
}

Seen no_place(const Evidence& evidence, const Place& place) {
  return see_unplaced(evidence, place.sentence,
                      [&](const std::string& reason, const std::string& message) {
                        return reason == "Unschedulable" && says(place, message);
                      });
}

Seen no_place_of_another_kind(const Evidence& evidence) {
  return see_unplaced(evidence, "the scheduler finds no node",
                      [](const std::string& reason, const std::string& message) {
                        return reason == "Unschedulable" &&
                               std::none_of(
                                   kPlaces.begin(), kPlaces.end(),
                                   [&](const Place& place) { return says(place, message); });
                      });
}

Seen gated(const Evidence& evidence) {
  return see_unplaced(
      evidence, "a scheduling gate holds the pods back (a queue's quota?)",
      [](const std::string& reason, const std::string&) { return reason == "SchedulingGated"; });
}

/// Nobody has looked at the pod: no condition, no event.
Seen no_scheduler(const Evidence& evidence) {
  constexpr std::chrono::seconds kScheduled{30};
  std::vector<const PodFacts*> found;
  for (const PodFacts* facts : evidence.waiting()) {
    const Pod& pod = facts->pod;
    const bool is_old =
        pod.meta.creation_time && evidence.now >= *pod.meta.creation_time + kScheduled;
    if (pod.node.empty() && pod.waiting_reason.empty() && is_old) found.push_back(facts);
  }
  if (found.empty()) return {};
  return {{pods_text(found), "no scheduler has looked at them since they were created",
           found.front()->pod.meta.creation_time}};
}

Seen excluded_nodes(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  const bool matters = std::any_of(
      evidence.pods.begin(), evidence.pods.end(),
      [](const PodFacts& facts) { return !facts.has_started && facts.pod.node.empty(); });
  if (status.excluded_nodes.empty() || !matters || is_terminal(status.phase)) return {};
  std::string nodes;
  for (const std::string& node : status.excluded_nodes) nodes += (nodes.empty() ? "" : ", ") + node;
  return {{"job " + evidence.job.meta.name,
           "nodes that were to blame for failures are left out: " + nodes,
           status.last_exclusion_time}};
}

}  // namespace

Rules placement_rules() {
  Rules rules = {
      {"NodesExcluded", Stage::placement,
       "they come back after nodeLoss.excludeSeconds; tj suspend and tj resume take them back at "
       "once",
       excluded_nodes},
      {"Gated", Stage::placement,
       "the queue that set the gate takes it away (kubectl -n {ns} get pods -o yaml shows "
       "schedulingGates)",
       gated},
      {"NotScheduled", Stage::placement,
       "does the cluster's scheduler run? Is schedulerName of the template one that does?",
       no_scheduler},
  };
  for (const Place& place : kPlaces) {
    rules.push_back({place.cause, Stage::placement, place.remedy,
                     [&place](const Evidence& evidence) { return no_place(evidence, place); }});
  }
  rules.push_back({"Unschedulable", Stage::placement,
                   "the message is the scheduler's own; kubectl describe pod has its events",
                   no_place_of_another_kind});
  return rules;
}

}  // namespace tj
