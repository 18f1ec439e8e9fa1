// What `trainer plan` is asked, and what of the answer follows from the flags of the training
// alone. Pure.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "contract/result.h"
#include "trainer/predict/forecast.h"
#include "trainer/train/plan.h"
#include "trainer/workload/flag.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

/// Flags of the command itself, beside those of the training.
std::span<const Flag> plan_flags();

struct PlanRequest {
  int ranks = 1;
  std::optional<double> link_bytes_per_second = {};
  double latency_s = 0;
  bool probes_link = false;
  std::optional<double> step_seconds = {};  // of computing, all passes and the update
  std::optional<double> tflops = {};        // that a rank reaches
  bool runs_passes = true;                  // here, for what is not given
  double pass_seconds_max = 10;             // of them
  CodecRates codec_rates = {};
  double target = 0.9;
  bool is_json = false;
  std::string svg = {};                  // empty: no picture
  std::optional<double> gpu_bytes = {};  // memory of the GPU that is planned for
  std::string gpu_origin = {};
  Codec codec = Codec::fp32;
  int powersgd_rank = kReduceRankDefault;
  std::string link_text = {};  // as given
};

/// `world_size`: of the launch environment, where no flag says how many ranks.
Result<PlanRequest> read_plan_request(const Flags& flags, int world_size);

/// The flags of `trainer train` among them, with what that needs and a plan has not: --out, and
/// --data where there is none.
Flags train_flags_of(const Flags& flags);

/// How the passes of the run are computed where it runs: on a GPU that is planned for in the
/// precision of its configuration, unless a flag says otherwise.
PassRule pass_rule_of(const PlanRequest& request, const TrainPlan& plan);

/// All of a forecast but what must be measured. Gradients are in the order of the blocks,
/// activations by the workload's formula, where it has one.
ForecastInputs forecast_inputs(const PlanRequest& request, const TrainPlan& plan,
                               const Workload& workload);

/// Computing by what was given; absent: it must be measured.
std::optional<ComputeTime> given_compute(const PlanRequest& request, const TrainPlan& plan,
                                         const Workload& workload);

}  // namespace tj::trainer
