// Workers that were taken away - with their node, by an eviction, by hand - and the nodes that they
// are or were on.
#include <algorithm>
#include <array>

#include "cli/explain/rules.h"
#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/plan/explain.h"

namespace tj {
namespace {

using namespace read;
using Seen = std::vector<Sighting>;

std::string pod_of(const Evidence& evidence, const FirstFailure& failure) {
  return "pod " + names::worker_pod(evidence.job.meta.name, failure.rank) + " of attempt " +
         std::to_string(failure.attempt);
}

Seen see_loss(const Evidence& evidence, FailureCause cause, std::string object = "") {
  const auto& failure = evidence.job.status.first_failure;
  if (!failure || failure->cause != cause) return {};
  if (object.empty()) object = pod_of(evidence, *failure);
  return {{object, describe_first_failure(*failure), failure->finished_at}};
}

Seen node_lost(const Evidence& evidence) {
  const auto& failure = evidence.job.status.first_failure;
  const std::string node = failure ? failure->node : "";
  Seen seen = see_loss(evidence, FailureCause::node_lost, "node " + node);
  if (!seen.empty())
    seen.front().what += "; worker " + std::to_string(failure->rank) + " was lost with it";
  return seen;
}

/// What disrupted a pod, by the reason of its condition DisruptionTarget or of the pod
/// (KEP-3329; pkg/kubelet/eviction).
struct Disruption {
  const char* cause;
  std::array<const char*, 4> reasons;  // nullptr: fewer
  const char* remedy;
};
constexpr std::array kDisruptions = {
    Disruption{"Preempted",
               {"PreemptionByScheduler", "Preempting", nullptr, nullptr},
               "pods of a higher priority took its place; it does not count against maxRestarts. A "
               "priorityClassName of the template protects it"},
    Disruption{"Drained",
               {"EvictionByEvictionAPI", "DeletionByTaintManager", "DeletionByPodGC", nullptr},
               "a node is being drained or was tainted; it does not count. A PodDisruptionBudget "
               "slows drains down"},
    Disruption{"NodeShutdown",
               {"NodeShutdown", "Shutdown", "Terminated", nullptr},
               "the node was switched off in order; it does not count"},
    Disruption{"Evicted",
               {"TerminationByKubelet", "Evicted", nullptr, nullptr},
               "the node was short of memory, disk or processes: set resources.requests to what a "
               "worker needs, sizeLimit on an emptyDir, and look at what else runs there"},
};

bool is_by(const Disruption& disruption, const std::string& reason) {
  return std::any_of(disruption.reasons.begin(), disruption.reasons.end(),
                     [&](const char* each) { return each != nullptr && reason == each; });
}

Seen disrupted(const Evidence& evidence, const Disruption& disruption) {
  const auto& failure = evidence.job.status.first_failure;
  const bool is_it = failure && is_by(disruption, failure->reason);
  return is_it ? see_loss(evidence, FailureCause::disrupted) : Seen{};
}

Seen disrupted_otherwise(const Evidence& evidence) {
  const auto& failure = evidence.job.status.first_failure;
  const bool is_known =
      failure && std::any_of(kDisruptions.begin(), kDisruptions.end(),
                             [&](const Disruption& each) { return is_by(each, failure->reason); });
  return is_known ? Seen{} : see_loss(evidence, FailureCause::disrupted);
}

/// The nodes of pods that live, and that of the failure.
bool matters(const Evidence& evidence, const std::string& node) {
  const auto& failure = evidence.job.status.first_failure;
  if (failure && failure->node == node) return true;
  return std::any_of(evidence.pods.begin(), evidence.pods.end(),
                     [&](const PodFacts& facts) { return facts.pod.node == node; });
}

/// Conditions of nodes with one of these statuses.
Seen see_nodes(const Evidence& evidence, bool (*is_bad)(const std::string&, const std::string&)) {
  Seen seen;
  for (const json& node : evidence.nodes) {
    const std::string name = meta_from_json(node).name;
    if (!matters(evidence, name)) continue;
    for (const json& condition : array_at(object_at(node, "status"), "conditions")) {
      const std::string type = string_at(condition, "type");
      if (!is_bad(type, string_at(condition, "status"))) continue;
      const std::string message = string_at(condition, "message");
      seen.push_back({"node " + name,
                      "its condition " + type + " is " + string_at(condition, "status") +
                          (message.empty() ? "" : ": " + message),
                      time_at(condition, "lastTransitionTime")});
    }
  }
  return seen;
}

Seen nodes_not_ready(const Evidence& evidence) {
  return see_nodes(evidence, [](const std::string& type, const std::string& status) {
    return type == "Ready" && status != "True";
  });
}

Seen nodes_under_pressure(const Evidence& evidence) {
  return see_nodes(evidence, [](const std::string& type, const std::string& status) {
    return type.ends_with("Pressure") && status == "True";
  });
}

}  // namespace

Rules loss_rules() {
  Rules rules = {
      {"NodeNotReady", Stage::surroundings,
       "look at the node: is it up, does its kubelet run, does it reach the API server? kubectl "
       "describe node",
       nodes_not_ready},
      {"NodePressure", Stage::surroundings,
       "free what the node is short of; pods with requests below their use are evicted first",
       nodes_under_pressure},
      {"NodeLost", Stage::failure,
       "the gang restarts on other nodes and that does not count; look at the node", node_lost},
      {"PodDeleted", Stage::failure,
       "somebody or something deleted it; it does not count. The API server's audit log says who",
       [](const Evidence& evidence) { return see_loss(evidence, FailureCause::pod_deleted); }},
      {"PodRejected", Stage::failure,
       "the node took the pod and then refused it (a device that is gone, no room): kubectl "
       "describe node; after two the node is left out",
       [](const Evidence& evidence) { return see_loss(evidence, FailureCause::pod_rejected); }},
  };
  for (const Disruption& disruption : kDisruptions) {
    rules.push_back(
        {disruption.cause, Stage::failure, disruption.remedy,
         [&disruption](const Evidence& evidence) { return disrupted(evidence, disruption); }});
  }
  rules.push_back({"Disrupted", Stage::failure,
                   "it came from outside and does not count against maxRestarts",
                   disrupted_otherwise});
  return rules;
}

}  // namespace tj
