// What `trainer plan` decides before it measures anything: the request, the plan of the run that is
// asked about, its model and its data. Includes torch.
#pragma once
#include <memory>
#include <optional>

#include "trainer/comm/accelerator.h"
#include "trainer/train/plan.h"
#include "trainer/train/plan_request.h"
#include "trainer/values/failure.h"
#include "trainer/workload/sample_source.h"

namespace tj::trainer {

struct Asked {
  std::optional<Failure> failure;  // nothing else counts where there is one
  PlanRequest request;
  TrainPlan plan;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<SampleSource> source;
  ProcessEnv env;
  Accelerator accelerator;
  double process_bytes = 0;
};

Asked ask(const Choice& choice, const Flags& given);

}  // namespace tj::trainer
