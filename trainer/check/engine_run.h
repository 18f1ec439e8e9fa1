// Runs trainer-engine for what `trainer check` can't know without it, within a bound: how the ranks
// meet, and what a workload says of its data.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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

/// How long opening the data may take.
inline constexpr std::chrono::seconds kDataMax{60};

/// One of the three is set.
struct EngineEnd {
  std::optional<nlohmann::json> report;  // as report_json() writes it
  std::optional<Finding> failure;        // why there is none
  std::optional<int> stop_signal;        // asked to stop; no process is left
};

/// `trainer-engine check`, once for each process of the worker.
EngineEnd run_engines(const EngineRequest& request, SignalQueue& signals);

/// One of the three is set.
struct DataEnd {
  std::optional<std::string> description;  // "24,000 tokens in 3 files"
  std::optional<std::string> failure;      // why it can't be trained on
  std::optional<int> stop_signal;
};

/// `trainer-engine describe-data`, with flags of `trainer plan`: those that say how the data is
/// read count.
DataEnd describe_data(const std::vector<std::string>& flags, SignalQueue& signals);

/// How long opening the data, and a pass over two samples, may take.
inline constexpr std::chrono::seconds kPlanMax{120};

/// One of the three is set.
struct PlanEnd {
  std::optional<nlohmann::json> document;  // as `trainer plan --json` prints it
  std::optional<std::string> failure;      // why there is none
  std::optional<int> stop_signal;
};

/// `trainer-engine plan --json` as the first process of the worker, for all ranks of the job.
PlanEnd plan_training(const LaunchPlan& plan, const std::vector<std::string>& flags,
                      SignalQueue& signals);

}  // namespace tj::trainer
