#include "trainer/train/start_phases.h"

namespace tj::trainer {

bool says_phases(const TrainPlan& plan, const ProcessEnv& env) {
  return plan.log_style == LogStyle::platform && env.local_rank == 0;
}

std::string first_phase_lines(const ProcessEnv& env, const NodeGpus& gpus) {
  return platform_banner(env, gpus) + "\n" + variables_phase(env, gpus);
}

std::string other_phase_lines(const TrainPlan& plan, const ProcessEnv& env,
                              const std::string& collectives, const EnvironmentWords& environment) {
  const NetworkWords network{.collectives = collectives,
                             .limits = to_string(plan.limits),
                             .rendezvous_seconds = plan.rendezvous_timeout.count()};
  const ConfigurationWords configuration{.config = plan.config,
                                         .batch_size = plan.batch_size,
                                         .accumulation = plan.accumulation,
                                         .micro_batch = plan.micro_batch,
                                         .lr = plan.schedule.lr,
                                         .precision = to_string(plan.precision),
                                         .data_threads = plan.data_threads};
  return network_phase(network) + "\n" + environment_phase(environment) + "\n" +
         configuration_phase(configuration, env) + "\n" + rendezvous_phase(env);
}

}  // namespace tj::trainer
