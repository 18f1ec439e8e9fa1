#include "operator/local/pod_status.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/read.h"

namespace tj {
namespace {

using Json = nlohmann::json;

/// With milliseconds, unlike a kubelet: which worker of this machine ended first is known that
/// well.
std::string precise_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  std::string text = format_time(seconds);
  const std::string digits = std::to_string(1000 + (time - seconds).count()).substr(1);
  return text.insert(text.size() - 1, "." + digits);
}

bool ended_well(const ContainerRun& run) { return run.exit && run.exit->exit_code == 0; }
bool is_running(const ContainerRun& run) { return run.started_at && !run.exit; }

Json state_of(const ContainerRun& run) {
  if (run.exit) {
    Json terminated = {{"exitCode", run.exit->exit_code}, {"reason", run.exit->reason}};
    if (!run.exit->message.empty()) terminated["message"] = run.exit->message;
    if (run.started_at) terminated["startedAt"] = format_time(*run.started_at);
    if (run.exit->finished_at) terminated["finishedAt"] = precise_time(*run.exit->finished_at);
    return {{"terminated", std::move(terminated)}};
  }
  if (run.started_at) return {{"running", {{"startedAt", format_time(*run.started_at)}}}};
  return {{"waiting", {{"reason", run.waiting_reason}}}};
}

Json container_status(const ContainerRun& run, bool ready) {
  return {{"name", run.name},       {"image", run.image},
          {"imageID", ""},          {"restartCount", 0},
          {"ready", ready},         {"started", is_running(run)},
          {"state", state_of(run)}, {"lastState", Json::object()}};
}

/// A condition keeps its transition time until it turns.
Json condition(const char* type, bool holds, const Json& previous_status, TimePoint now) {
  const char* status = holds ? "True" : "False";
  std::string since = format_time(now);
  for (const Json& known : read::array_at(previous_status, "conditions")) {
    const bool is_same =
        read::string_at(known, "type") == type && read::string_at(known, "status") == status;
    if (is_same) since = read::string_at(known, "lastTransitionTime");
  }
  return {{"type", type}, {"status", status}, {"lastTransitionTime", since}};
}

}  // namespace

const char* to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::pending: return "Pending";
    case PodPhase::running: return "Running";
    case PodPhase::succeeded: return "Succeeded";
    case PodPhase::failed: return "Failed";
    case PodPhase::unknown: return "Unknown";
  }
  return "Unknown";
}

PodPhase phase_of(const PodRunState& run) {
  for (const ContainerRun& init : run.init_containers) {
    if (init.exit && !ended_well(init)) return PodPhase::failed;
  }
  if (run.main.exit) return ended_well(run.main) ? PodPhase::succeeded : PodPhase::failed;
  return run.main.started_at ? PodPhase::running : PodPhase::pending;
}

Json pod_status_patch(const PodRunState& run, const Json& previous_status, TimePoint now) {
  const bool initialized =
      std::all_of(run.init_containers.begin(), run.init_containers.end(), ended_well);
  const bool ready = is_running(run.main);
  Json status = {
      {"phase", to_string(phase_of(run))},
      {"hostIP", run.pod_ip},
      {"podIP", run.pod_ip},
      {"podIPs", Json::array({{{"ip", run.pod_ip}}})},
      {"conditions", Json::array({condition("PodScheduled", true, previous_status, now),
                                  condition("Initialized", initialized, previous_status, now),
                                  condition("ContainersReady", ready, previous_status, now),
                                  condition("Ready", ready, previous_status, now)})},
      {"containerStatuses", Json::array({container_status(run.main, ready)})}};
  if (run.accepted_at) status["startTime"] = format_time(*run.accepted_at);
  if (!run.init_containers.empty()) {
    Json list = Json::array();
    for (const ContainerRun& init : run.init_containers) {
      list.push_back(container_status(init, ended_well(init)));
    }
    status["initContainerStatuses"] = std::move(list);
  }
  return {{"status", std::move(status)}};
}

}  // namespace tj
