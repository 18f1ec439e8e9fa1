// The log of a start in a platform's words: a banner, and five phases of a line each, which say
// what was found. Pure: whoever has found it hands it over. The exact lines:
// tests/golden/trainer/platform_log.txt.
#pragma once
#include <optional>
#include <string>

#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

/// What a process sees of its node's GPUs.
struct NodeGpus {
  int count = 0;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES; absent: not set
};

/// Five lines, from "GPUs per node: 8" to "Total processes: 16".
std::string platform_banner(const ProcessEnv& env, const NodeGpus& gpus);

/// Who this node is, by which variables, and what becomes of its GPUs.
std::string variables_phase(const ProcessEnv& env, const NodeGpus& gpus);

struct NetworkWords {
  std::string collectives;  // as describe_collectives() says it
  std::string limits;       // --limit
  long long rendezvous_seconds = 0;
};
std::string network_phase(const NetworkWords& network);

struct EnvironmentWords {
  std::string device;        // "cuda:0 (NVIDIA H100, NCCL 2.28.9)"
  std::string libtorch;      // its version
  std::string data;          // what the source says of itself
  std::string failure = {};  // what can't be used; else empty
};
std::string environment_phase(const EnvironmentWords& words);

struct ConfigurationWords {
  Setting config;  // the table's row
  long long batch_size = 0;
  long long accumulation = 1;
  long long micro_batch = 0;
  double lr = 0;
  std::string precision;
  int data_threads = 1;
};
std::string configuration_phase(const ConfigurationWords& words, const ProcessEnv& env);

/// Of rank 0 or of another one. Said before the others are there.
std::string rendezvous_phase(const ProcessEnv& env);

}  // namespace tj::trainer
