// Low-rank adapters of a checkpoint (trainer train --lora) as the two files that PEFT loads,
// adapter_config.json and adapter_model.safetensors. Needs no torch, and knows no model: the
// checkpoint has A and B by PEFT's names and in its shapes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/folder.h"

namespace tj::trainer {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterModelFile = "adapter_model.safetensors";

struct AdapterOrder {
  std::filesystem::path from;  // a checkpoint, or a folder of checkpoints
  std::filesystem::path to;    // a folder, made where it is not there
  /// Before the name of each module: what of the other program holds our model, "model." in
  /// LeRobot's policies.
  std::string module_prefix;
};

struct AdapterEnd {
  std::filesystem::path source;  // the checkpoint that was taken
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::size_t adapted = 0;                 // modules
  std::size_t whole = 0;                   // modules that were trained as a whole (--lora-also)
  std::int64_t bytes = 0;                  // of adapter_model.safetensors
  std::vector<DamagedCheckpoint> damaged;  // newer than the one that was taken
};

/// Each file appears whole or not at all, in place of what had its name. Fails with Code::invalid
/// where the checkpoint can't be used, has no adapters, or has some that PEFT's files have no words
/// for; with any other code where a file can't be written.
Result<AdapterEnd> export_adapter(const AdapterOrder& order);

}  // namespace tj::trainer
