#include "trainer/values/process_env.h"

#include "contract/names.h"

namespace tj::trainer {

std::vector<EnvVar> to_env(const ProcessEnv& env) {
  const auto text = [](int number) { return std::to_string(number); };
  const std::string run_id = env.job_uid.empty() ? "none" : env.job_uid + "-" + text(env.attempt);
  std::vector<EnvVar> variables{{"RANK", text(env.rank)},
                                {"WORLD_SIZE", text(env.world_size)},
                                {"LOCAL_RANK", text(env.local_rank)},
                                {"LOCAL_WORLD_SIZE", text(env.local_world_size)},
                                {"GROUP_RANK", text(env.worker_index)},
                                {"GROUP_WORLD_SIZE", text(env.world_size / env.local_world_size)},
                                {"ROLE_NAME", "default"},
                                {"ROLE_RANK", text(env.rank)},
                                {"ROLE_WORLD_SIZE", text(env.world_size)},
                                {"MASTER_ADDR", env.master_addr},
                                {"MASTER_PORT", text(env.master_port)},
                                {"TORCHELASTIC_RUN_ID", run_id},
                                // Rank 0 hosts the store itself; there is no agent that does.
                                {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  // Conventions without them (SLURM) have an identity all the same; it is the rendezvous key.
  if (!env.job_uid.empty()) variables.push_back({names::kEnvJobUid, env.job_uid});
  if (env.attempt > 0) variables.push_back({names::kEnvAttempt, text(env.attempt)});
  if (env.is_on_platform) variables.push_back({kEnvOnPlatform, "1"});
  return variables;
}

}  // namespace tj::trainer
