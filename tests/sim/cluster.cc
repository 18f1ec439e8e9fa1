#include "tests/sim/cluster.h"

#include <algorithm>

#include "tests/sim/process.h"

namespace tj::sim {
namespace {

using nlohmann::json;

constexpr int kNodes = 3;
// What programs end with; 0 as often as it takes for some gangs to reach their end.
constexpr int kExitCodes[] = {0,  0,  0,  0,  0,  0,   0,   0,   1,   3,  64,
                              75, 75, 76, 76, 78, 126, 127, 137, 139, 143};

json container(const json& state) {
  return {
      {"containerStatuses",
       json::array({{{"name", "main"}, {"ready", state.contains("running")}, {"state", state}}})}};
}

json with_phase(const char* phase, json status) {
  status["phase"] = phase;
  return status;
}

json condition(const char* type, const char* status, const char* reason) {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", "drawn by lot"}};
}

}  // namespace

Cluster::Cluster(Parts parts) : parts_(parts) {
  for (int index = 0; index < kNodes; ++index) {
    nodes_.push_back({"n" + std::to_string(index)});
    const json node{{"metadata", {{"name", nodes_.back().name}}}};
    TJ_CHECK(parts_.store.create(Resource::nodes, "", node).ok(), nodes_.back().name);
    report_node(nodes_.back());
  }
}

/// As the node controller sees it: a kubelet that does not report is Unknown.
void Cluster::report_node(const Node& node) {
  json ready = condition("Ready", node.is_silent ? "Unknown" : "True", "drawn");
  ready["lastTransitionTime"] = time();
  (void)parts_.store.patch_status(Resource::nodes, {"", node.name},
                                  {{"status", {{"conditions", json::array({ready})}}}});
}

std::string Cluster::time() const { return format_time(wall_time(parts_.now)); }

bool Cluster::is_reachable(const PodFacts& pod) const {
  return pod.node.empty() || std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
           return node.name == pod.node && !node.is_silent;
         });
}

void Cluster::report(const PodFacts& pod, const json& status) {
  (void)parts_.store.patch_status(Resource::pods, pod.key, {{"status", status}});
}

const PodFacts* Cluster::any_pod() {
  const auto& pods = parts_.mirror.pods();
  if (pods.empty()) return nullptr;
  return &std::next(pods.begin(), parts_.dice.below(pods.size()))->second;
}

bool Cluster::move_a_pod() {
  const PodFacts* pod = any_pod();
  return pod != nullptr && move(PodFacts(*pod));
}

bool Cluster::move(const PodFacts& pod) {
  if (!is_reachable(pod)) return false;
  if (pod.is_marked && (pod.is_done || parts_.dice.percent(60))) {
    finish(pod);
  } else if (pod.is_done || pod.job_uid.empty()) {
    return false;
  } else if (pod.is_marked || pod.phase == "Running") {
    end_somehow(pod);
  } else if (pod.node.empty()) {
    schedule(pod);
  } else if (parts_.dice.percent(75)) {
    start(pod);
  } else {
    trouble_at_start(pod);
  }
  return true;
}

void Cluster::bind(const PodFacts& pod) {
  std::vector<const Node*> up;
  for (const Node& node : nodes_) {
    if (!node.is_silent) up.push_back(&node);
  }
  if (up.empty()) return;
  const Node& node = *parts_.dice.pick(up);
  parts_.trace.note("scheduler: " + pod.key.name + " on " + node.name);
  (void)parts_.store.bind_pod(pod.key, node.name);
}

void Cluster::schedule(const PodFacts& pod) {
  if (parts_.dice.percent(80)) return bind(pod);
  parts_.trace.note("scheduler: no node for " + pod.key.name);
  json unschedulable = condition("PodScheduled", "False", "Unschedulable");
  unschedulable["lastTransitionTime"] = time();
  report(pod, {{"conditions", json::array({unschedulable})}});
}

void Cluster::start(const PodFacts& pod) {
  parts_.trace.note("kubelet: " + pod.key.name + " runs");
  json status = with_phase("Running", container({{"running", {{"startedAt", time()}}}}));
  status["podIP"] = "10.0.0.1";
  report(pod, status);
}

void Cluster::trouble_at_start(const PodFacts& pod) {
  const int roll = parts_.dice.below(10);
  if (roll < 6) {
    parts_.trace.note("kubelet: " + pod.key.name + " can't pull its image");
    report(pod, container({{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no"}}}}));
  } else if (roll < 8) {
    parts_.trace.note("kubelet: " + pod.key.name + " is rejected");
    report(pod, {{"phase", "Failed"}, {"reason", "UnexpectedAdmissionError"}, {"message", "no"}});
  } else {
    end(pod, 1, false);
  }
}

void Cluster::end(const PodFacts& pod, int exit_code, bool out_of_memory) {
  const json terminated{
      {"exitCode", exit_code},
      {"reason", exit_code == 0 ? "Completed" : (out_of_memory ? "OOMKilled" : "Error")},
      {"startedAt", pod.started_at.empty() ? time() : pod.started_at},
      {"finishedAt", time()}};
  json status = container({{"terminated", terminated}});
  // The kubelet may tell of the container's end before the pod's.
  const bool is_whole = parts_.dice.percent(80);
  if (is_whole) status["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
  parts_.trace.note("kubelet: " + pod.key.name + " ends with " + std::to_string(exit_code) +
                    (is_whole ? "" : ", its pod not yet"));
  report(pod, status);
}

void Cluster::end_somehow(const PodFacts& pod) {
  if (pod.has_exit) {
    const auto live = parts_.store.get(Resource::pods, pod.key);
    const json& state = live.value().at("status").at("containerStatuses").at(0).at("state");
    const bool is_well = state.at("terminated").at("exitCode") == 0;
    parts_.trace.note("kubelet: the pod of " + pod.key.name + " ends as well");
    return report(pod, {{"phase", is_well ? "Succeeded" : "Failed"}});
  }
  if (pod.is_marked) {
    constexpr int kCodes[] = {0, 75, 137, 143};
    return end(pod, parts_.dice.pick(kCodes), false);
  }
  if (parts_.dice.percent(5)) return end(pod, 137, true);
  end(pod, parts_.dice.pick(kExitCodes), false);
}

void Cluster::finish(const PodFacts& pod) {
  parts_.trace.note("kubelet: " + pod.key.name + " is gone");
  (void)parts_.store.finish_delete(pod.key, pod.uid);
}

bool Cluster::evict_a_pod() {
  const PodFacts* known = any_pod();
  if (known == nullptr || known->is_done || known->node.empty()) return false;
  const PodFacts pod = *known;
  parts_.trace.note("eviction of " + pod.key.name);
  const char* why = is_reachable(pod) ? "EvictionByEvictionAPI" : "DeletionByTaintManager";
  json status{{"conditions", json::array({condition("DisruptionTarget", "True", why)})}};
  const bool by_kubelet = parts_.dice.percent(30);
  if (by_kubelet && is_reachable(pod)) {
    status.update({{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "out of disk"}});
    report(pod, status);
  } else {
    report(pod, status);
    (void)parts_.store.remove(Resource::pods, pod.key);
  }
  return true;
}

bool Cluster::change_a_node() {
  Node& node = nodes_[static_cast<std::size_t>(parts_.dice.below(nodes_.size()))];
  node.is_silent = !node.is_silent;
  parts_.trace.note("node " + node.name + (node.is_silent ? " falls silent" : " is back"));
  report_node(node);
  return true;
}

void Cluster::mend_nodes(bool all) {
  const bool any_is_up =
      std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.is_silent; });
  if (any_is_up && !all) return;
  for (Node& node : nodes_) {
    node.is_silent = false;
    report_node(node);
  }
}

bool Cluster::runs_as_a_whole(const std::string& job_uid) const {
  const JobFacts* job = parts_.mirror.job(job_uid);
  return job != nullptr && job->phase == "Running";
}

bool Cluster::settle(bool ends_well) {
  std::vector<PodFacts> pods;
  for (const auto& [uid, pod] : parts_.mirror.pods()) pods.push_back(pod);
  bool moved = false;
  for (const PodFacts& pod : pods) moved |= settle(pod, ends_well);
  return moved;
}

bool Cluster::settle(const PodFacts& pod, bool ends_well) {
  if (!is_reachable(pod)) return false;
  if (pod.is_marked) {
    finish(pod);
  } else if (pod.is_done || pod.job_uid.empty()) {
    return false;
  } else if (pod.has_exit) {
    end_somehow(pod);
  } else if (pod.node.empty()) {
    bind(pod);
  } else if (pod.phase != "Running") {
    start(pod);
  } else if (ends_well && runs_as_a_whole(pod.job_uid)) {
    end(pod, 0, false);
  } else {
    return false;
  }
  return true;
}

}  // namespace tj::sim
