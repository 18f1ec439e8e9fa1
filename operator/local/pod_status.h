// The status that a kubelet writes for a pod, from what happened to its containers. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/types.h"

namespace tj {

struct ContainerRun {
  std::string name;
  std::string image;
  std::string waiting_reason = "PodInitializing";  // while it has not started
  std::optional<TimePoint> started_at;
  std::optional<ContainerExit> exit;
  bool operator==(const ContainerRun&) const = default;
};

struct PodRunState {
  std::string pod_ip;
  std::optional<TimePoint> accepted_at;
  std::vector<ContainerRun>
      init_containers;  // in order; all must end with 0 before the main container starts
  ContainerRun main;
  bool operator==(const PodRunState&) const = default;
};

PodPhase phase_of(const PodRunState& run);
const char* to_string(PodPhase phase);

/// {"status": {...}}: the body of a merge patch. `previous` keeps the transition times of
/// conditions that did not turn.
nlohmann::json pod_status_patch(const PodRunState& run, const nlohmann::json& previous_status,
                                TimePoint now);

}  // namespace tj
