#include "trainer/train/report_options.h"

namespace tj::trainer {

ReportOptions report_options(const TrainPlan& plan) {
  const Gpt2Config& model = plan.model;
  return {.out = plan.out,
          .resume = plan.resume,
          .steps = plan.schedule.steps,
          .log_every = plan.log_every,
          .tensorboard = plan.tensorboard,
          .log_dir = plan.log_dir,
          .progress_port = plan.progress_port,
          .peak_tflops = plan.peak_tflops,
          .cost = {.parameters = parameter_count(model) - model.context * model.width,
                   .layers = model.layers,
                   .width = model.width,
                   .sequence_tokens = model.context},
          .hyperparameters = plan.settings};
}

}  // namespace tj::trainer
