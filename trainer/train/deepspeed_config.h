// A DeepSpeed configuration file, as people bring it along: what it asks for becomes flags of ours,
// and of every key it is said what becomes of it. Pure. Keys and defaults: DeepSpeed,
// deepspeed/runtime/zero/config.py and docs/_pages/config-json.md; "auto": transformers,
// integrations/deepspeed.py. Sizes are elements.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/workload/flag.h"

namespace tj::trainer {

/// A key of a person's configuration file, of whatever program.
struct ConfigKey {
  std::string key;  // "zero_optimization.stage"
  std::string value;
  std::string outcome;  // "--zero 3", "not honoured: ..."
  bool operator==(const ConfigKey&) const = default;
};

struct DeepSpeedConfig {
  Flags flags;                  // what the file sets
  std::vector<ConfigKey> keys;  // all of the file, in its order
};

/// Fails with Code::invalid when the text is no JSON object, a value is of the wrong kind, or the
/// batch sizes contradict each other on so many ranks.
Result<DeepSpeedConfig> deepspeed_config_from(std::string_view text, int world_size);

/// Adds the file's flags to those given on the command line. Fails with Code::invalid, naming both,
/// where they contradict each other.
Result<Flags> with_deepspeed(const Flags& given, const DeepSpeedConfig& config);

/// "1e-3" and "0.001" are the same value of a flag.
bool is_same_value(const std::string& one, const std::string& other);

/// One line for each key: "deepspeed: KEY VALUE | OUTCOME".
std::vector<std::string> deepspeed_lines(const DeepSpeedConfig& config);

}  // namespace tj::trainer
