// A job that the real operator core decides about, in a cluster in memory, and what tj explain says
// of it: what schedulers, kubelets and API servers say is theirs, word by word.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/explain/rules.h"
#include "tests/loop/world.h"

namespace tj {

using namespace std::chrono_literals;
using nlohmann::json;

struct Site : World {
  explicit Site(int workers = 2, json spec = json::object()) {
    for (const char* node : {"n1", "n2"}) add_node(node);
    start_controller();
    create_job("a", workers, std::move(spec));
    pass(3s);
  }
  TimePoint now() {
    return *parse_time("2026-11-21T00:00:00Z") +
           std::chrono::duration_cast<std::chrono::milliseconds>(steady_now().time_since_epoch());
  }

  void place_all() {
    for (const std::string& pod : pod_names()) place_pod(pod, pod.ends_with("0") ? "n1" : "n2");
    pass(1s);
  }
  void start_all() {
    place_all();
    for (const std::string& pod : pod_names()) start_pod(pod);
    pass(1s);
  }
  void patch_pod(const std::string& name, const json& status) {
    TJ_CHECK(objects().patch_status(Resource::pods, {"default", name}, {{"status", status}}).ok(),
             name);
    pass(3s);
  }
  void unschedulable(const std::string& message, const std::string& reason = "Unschedulable") {
    for (const std::string& pod : pod_names()) {
      patch_pod(pod, {{"conditions", json::array({{{"type", "PodScheduled"},
                                                   {"status", "False"},
                                                   {"reason", reason},
                                                   {"message", message},
                                                   {"lastTransitionTime", format_time(now())}}})}});
    }
  }
  void waiting(const std::string& pod, const std::string& reason, const std::string& message) {
    patch_pod(
        pod,
        {{"containerStatuses",
          json::array({{{"name", "main"},
                        {"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}})}});
  }
  /// The main container ends so, and says this.
  void end(const std::string& pod, int code, const std::string& message,
           const std::string& reason = "Error") {
    const json terminated{{"exitCode", code},
                          {"reason", reason},
                          {"message", message},
                          {"startedAt", format_time(now() - 60s)},
                          {"finishedAt", format_time(now())}};
    patch_pod(pod, {{"phase", "Failed"},
                    {"containerStatuses",
                     json::array({{{"name", "main"}, {"state", {{"terminated", terminated}}}}})}});
  }
  void event(const std::string& pod, const std::string& reason, const std::string& message) {
    const json event{{"metadata", {{"name", pod + ".17a"}}},
                     {"involvedObject", {{"kind", "Pod"}, {"name", pod}}},
                     {"reason", reason},
                     {"message", message},
                     {"type", "Warning"},
                     {"lastTimestamp", format_time(now())}};
    TJ_CHECK(objects().create(Resource::events, "default", event).ok(), pod);
  }
  /// Whatever is created is refused so.
  void refuse(const std::string& message, Code code = Code::forbidden) {
    api().set_request_fault([=](const Request& request) -> std::optional<RequestFault> {
      if (request.verb != Verb::create || request.resource != Resource::pods) return std::nullopt;
      return RequestFault{RequestFault::Kind::fail_before, Error{code, message, "", {}}};
    });
  }
  Evidence evidence() {
    Gathered all{.job = job("a"), .pods = {}, .events = {}, .nodes = {}};
    for (const json& pod : objects().objects(Resource::pods)) all.pods.push_back(pod);
    for (const json& each : objects().objects(Resource::events)) all.events.push_back(each);
    for (const json& node : objects().objects(Resource::nodes)) all.nodes.push_back(node);
    return *read_evidence(all, now());
  }
  std::vector<Finding> findings() { return explain(evidence()); }
  std::vector<std::string> causes() {
    std::vector<std::string> names;
    for (const Finding& finding : findings()) names.push_back(finding.cause);
    return names;
  }
  /// What was found of this cause: "object: what"; empty if it was not.
  std::string found(const std::string& cause) {
    for (const Finding& finding : findings()) {
      if (finding.cause == cause) return finding.seen.object + ": " + finding.seen.what;
    }
    return "";
  }
};

inline json with_policy(json policy) { return {{"runPolicy", std::move(policy)}}; }

}  // namespace tj
