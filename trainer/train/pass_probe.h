// What passes of a model take on this machine, by running some over samples that nobody needs:
// seconds, the order in which backward completes gradients, and memory. Includes torch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/predict/step.h"
#include "trainer/train/plan.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

struct PassProbeRequest {
  const TrainPlan& plan;
  const Workload& workload;
  const SampleSource& source;
  double seconds_max = 10;    // of passes; one pass of one sample is made in any case
  double memory_bytes = 0;    // that may be taken here
  bool measures_time = true;  // false: memory alone, by passes of one and two samples
};

struct PassProbe {
  ComputeTime compute;              // zeros where only memory is measured
  std::vector<Gradient> gradients;  // in the order of their completion
  double activation_bytes = 0;      // at the plan's micro-batch, beside weights and gradients
  double scratch_bytes = 0;         // that the process has grown by beside all tensors
  std::int64_t samples = 1;         // of the largest pass; smaller than the micro-batch: scaled
};

/// Fails with Code::unavailable where the model's state, with the activations of a sample as far as
/// there is a formula for them, is more than the memory.
Result<PassProbe> probe_passes(const PassProbeRequest& request);

/// What the process takes now; 0: not known.
double resident_bytes();

}  // namespace tj::trainer
