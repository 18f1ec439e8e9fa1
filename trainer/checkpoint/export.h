// Weights of a checkpoint as one file that other programs read: .pth or .safetensors. Needs no
// torch, knows no model, and holds no copy of the weights in memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/folder.h"

namespace tj::trainer {

enum class ExportedWeights {
  raw,  // as the last step left them
  ema,  // their averages; of what has none (frozen tensors, buffers) the tensor itself
};

struct ExportOrder {
  /// A checkpoint, a folder of checkpoints (the newest usable one is taken), a folder with
  /// model.safetensors or its shards, or a .safetensors file.
  std::filesystem::path from;
  std::filesystem::path to;  // ends in .pth, .pt or .safetensors
  ExportedWeights weights = ExportedWeights::raw;
};

struct ExportEnd {
  std::filesystem::path source;      // that was taken
  std::optional<std::int64_t> step;  // of a checkpoint
  std::size_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;                  // of the file
  std::vector<DamagedCheckpoint> damaged;  // newer than the one that was taken
};

/// True of a name that `to` may have.
bool is_export_name(const std::filesystem::path& path);

/// The file appears whole or not at all, in place of what had its name. What is in a manifest is
/// verified. Fails with Code::invalid where the weights can't be used or are not there, with any
/// other code where the file can't be written.
Result<ExportEnd> export_weights(const ExportOrder& order);

}  // namespace tj::trainer
