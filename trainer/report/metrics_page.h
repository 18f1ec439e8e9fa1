// What rank 0 serves: the run at one moment, as a document and as Prometheus' text. Pure.
#pragma once
#include <optional>
#include <string>

#include "contract/progress.h"
#include "trainer/report/ledger.h"
#include "trainer/report/progress.h"

namespace tj::trainer {

/// The run as far as rank 0 knows it.
struct RunState {
  Progress progress;
  std::optional<double> eval_loss;
  double lr = 0;
  double gradient_norm = 0;
  double step_seconds = 0;
  std::optional<double> exposed_seconds = {};  // of waiting for other ranks, once there is a step
  std::vector<MetricValue> metrics = {};       // of the last step
  std::string unit = "samples";                // what the next two count
  std::optional<double> units_per_second;
  double units = 0;   // trained on by this process' run, of all ranks
  Spending spending;  // of all attempts
};

/// Prometheus' text format 0.0.4. What is not known yet is left out.
/// Source: prometheus.io/docs/instrumenting/exposition_formats
std::string metrics_page(const RunState& state);

}  // namespace tj::trainer
