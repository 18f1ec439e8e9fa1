// Runs `trainer-engine check` once for each process of the worker, and waits for all of them within
// a bound.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trainer/check/finding.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/signals.h"

namespace tj::trainer {

/// What measuring takes after the ranks have met.
inline constexpr std::chrono::seconds kMeasureMax{60};

struct EngineRequest {
  const LaunchPlan& plan;
  std::string facts;          // WorkerFacts as text, for the first process
  std::chrono::seconds wait;  // for the other ranks
};

/// One of the three is set.
struct EngineEnd {
  std::optional<nlohmann::json> report;  // as report_json() writes it
  std::optional<Finding> failure;        // why there is none
  std::optional<int> stop_signal;        // asked to stop; no process is left
};

EngineEnd run_engines(const EngineRequest& request, SignalQueue& signals);

}  // namespace tj::trainer
