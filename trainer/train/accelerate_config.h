// A configuration file of accelerate (`deepspeed_8gpu.yaml`), as people bring it along: what it
// asks for becomes flags of ours, of every key it is said what becomes of it, and a job of another
// size than this one is refused. Pure. Keys and defaults: accelerate,
// commands/config/config_args.py and utils/dataclasses.py (DeepSpeedPlugin,
// FullyShardedDataParallelPlugin).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/train/deepspeed_config.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

struct AccelerateConfig {
  Flags flags;                  // what the file sets
  std::vector<ConfigKey> keys;  // all of the file, in the order of their names
  std::string deepspeed_file;   // of deepspeed_config_file; empty: none
};

/// Fails with Code::invalid when the document is no object, a value is of the wrong kind, two keys
/// contradict each other, or one contradicts the job of `env`.
Result<AccelerateConfig> accelerate_config_from(const nlohmann::json& document,
                                                const ProcessEnv& env);

/// One line for each key: "accelerate: KEY VALUE | OUTCOME".
std::vector<std::string> accelerate_lines(const AccelerateConfig& config);

}  // namespace tj::trainer
