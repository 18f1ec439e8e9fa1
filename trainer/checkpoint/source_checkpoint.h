// Which checkpoint is meant by a user who names one, or the folder of a training.
#pragma once
#include <filesystem>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/folder.h"

namespace tj::trainer {

struct SourceCheckpoint {
  FoundCheckpoint checkpoint;
  std::vector<DamagedCheckpoint> damaged;  // newer than the one that was taken
};

/// Is it a checkpoint, or a folder with some, whole or not?
bool has_checkpoint(const std::filesystem::path& from);

/// Itself, of which the files of `stems` are verified, or the newest whole one in it. Fails with
/// Code::invalid, by name.
Result<SourceCheckpoint> source_checkpoint(const std::filesystem::path& from,
                                           const GroupStems& stems);

}  // namespace tj::trainer
