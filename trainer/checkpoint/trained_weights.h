// What a user names as a trained model: a file, a folder of weights, a checkpoint, or the --out of
// a training.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

/// The file or the folder that holds the weights: of a folder of checkpoints the newest one that is
/// whole; newer ones that are damaged are told. Fails with Code::invalid, in the words of `flag`.
Result<std::filesystem::path> find_trained_weights(const std::filesystem::path& named,
                                                   const std::string& flag);

}  // namespace tj::trainer
