#include "trainer/train/report_options.h"

namespace tj::trainer {

ReportOptions report_options(const TrainPlan& plan, const Workload& workload) {
  const auto words = workload.words();
  const auto cost = workload.cost();
  return {.out = plan.out,
          .resume = plan.resume,
          .steps = plan.schedule.steps,
          .log_every = plan.log_every,
          .log_style = plan.log_style,
          .tensorboard = plan.tensorboard,
          .log_dir = plan.log_dir,
          .progress_port = plan.progress_port,
          .peak_tflops = plan.peak_tflops,
          .unit = words.unit,
          .flops_per_unit = cost.flops / static_cast<double>(words.units),
          .flops_formula = cost.formula,
          .hyperparameters = plan.settings};
}

}  // namespace tj::trainer
