#include "trainer/report/platform_log.h"

namespace tj::trainer {
namespace {

std::string phase(int number, const std::string& text) {
  return "[" + std::to_string(number) + "/5] " + text;
}

/// "1 process", "8 processes"
std::string counted(long long count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

int nodes_of(const ProcessEnv& env) { return env.world_size / env.local_world_size; }

std::string master_of(const ProcessEnv& env) {
  return env.master_addr + ":" + std::to_string(env.master_port);
}

std::string gpus_text(const NodeGpus& gpus) {
  const std::string set = gpus.visible_devices ? "CUDA_VISIBLE_DEVICES=" + *gpus.visible_devices
                                               : "CUDA_VISIBLE_DEVICES is not set";
  if (gpus.count == 0) return "no GPU is visible (" + set + ")";
  return counted(gpus.count, "GPU is", "GPUs are") + " visible (" + set + ")" +
         (gpus.count > 1 ? ", each process takes that of its local rank" : "");
}

}  // namespace

std::string platform_banner(const ProcessEnv& env, const NodeGpus& gpus) {
  return "GPUs per node: " + std::to_string(gpus.count) +
         "\nNodes: " + std::to_string(nodes_of(env)) +
         "\nThis node: " + std::to_string(env.worker_index) + "\nMaster: " + master_of(env) +
         "\nTotal processes: " + std::to_string(env.world_size);
}

std::string variables_phase(const ProcessEnv& env, const NodeGpus& gpus) {
  const std::string source = env.is_on_platform ? "a platform's WORLD_SIZE and RANK" : env.origin;
  return phase(1, "variables: node " + std::to_string(env.worker_index) + " of " +
                      std::to_string(nodes_of(env)) + ", by " + source + "; " + gpus_text(gpus) +
                      "; " + counted(env.local_world_size, "process", "processes") +
                      " on a node, " + std::to_string(env.world_size) + " in all");
}

std::string network_phase(const NetworkWords& network) {
  return phase(2, network.collectives + "; ranks wait " +
                      std::to_string(network.rendezvous_seconds) +
                      " s for each other, and then at most (in seconds) " + network.limits);
}

std::string environment_phase(const EnvironmentWords& words) {
  if (!words.failure.empty())
    return phase(3, "environment: training can't begin: " + words.failure);
  return phase(3, "environment: computes on " + words.device + "; libtorch " + words.libtorch +
                      "; data: " + words.data);
}

std::string configuration_phase(const ConfigurationWords& words, const ProcessEnv& env) {
  return phase(
      4, "configuration: " + words.config.value + " (" + words.config.origin + "): batch of " +
             std::to_string(words.batch_size) + " = " + counted(env.world_size, "rank", "ranks") +
             " x " + counted(words.accumulation, "pass", "passes") + " of " +
             std::to_string(words.micro_batch) + ", lr " + number_text(words.lr) + ", " +
             words.precision + ", " + counted(words.data_threads, "data thread", "data threads"));
}

std::string rendezvous_phase(const ProcessEnv& env) {
  if (env.rank > 0) {
    return phase(5, "rank " + std::to_string(env.rank) + " joins rank 0 at " + master_of(env));
  }
  const int others = env.world_size - 1;
  if (others == 0) return phase(5, "rank 0 is alone");
  return phase(5, "rank 0 coordinates at " + master_of(env) + ", " +
                      counted(others, "other rank joins", "other ranks join"));
}

}  // namespace tj::trainer
