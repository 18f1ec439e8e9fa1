// Writes model and optimizer as a checkpoint, and reads them back into the same tensors. Rank 0
// only.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/models/gpt2.h"
#include "trainer/train/adamw.h"

namespace tj::trainer {

struct TrainingState {
  Gpt2& model;
  AdamW& optimizer;
};

/// `manifest` without its files; they are filled in. Returns the path of the checkpoint.
Result<std::filesystem::path> save_checkpoint(const std::filesystem::path& out,
                                              const TrainingState& state, Manifest manifest);

/// Fails with Code::invalid when a tensor is missing or of another shape.
Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const TrainingState& state);

}  // namespace tj::trainer
