// The checkpoints of a run: folders step-000300 in --out. One appears whole or not at all, and is
// verified when read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/manifest.h"

namespace tj::trainer {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kManifestFile = "manifest.json";

std::string checkpoint_name(std::int64_t step);

/// Names of all checkpoint folders in `out`, newest first, verified or not. None when `out` is not
/// there.
std::vector<std::string> checkpoint_names(const std::filesystem::path& out);

struct FoundCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> found;
  std::vector<std::string>
      damaged;  // "step-000050: model.safetensors: is cut short: ...", newest first
};

/// Verifies sizes and hashes, newest first, until one is whole.
CheckpointSearch newest_usable_checkpoint(const std::filesystem::path& out);

/// Creates `out` and proves that it can be written to.
Result<void> prepare_out_folder(const std::filesystem::path& out);

/// A checkpoint in the making, under a temporary name that no search finds. Removed unless
/// committed.
class CheckpointDraft {
 public:
  static Result<CheckpointDraft> begin(const std::filesystem::path& out, std::int64_t step);
  const std::filesystem::path& folder() const { return folder_; }
  /// Writes the manifest, flushes, and gives the folder its name. Returns the final path.
  Result<std::filesystem::path> commit(const Manifest& manifest);

  CheckpointDraft(CheckpointDraft&& other) noexcept;
  CheckpointDraft& operator=(CheckpointDraft&&) = delete;
  ~CheckpointDraft();

 private:
  CheckpointDraft(std::filesystem::path out, std::filesystem::path folder);
  std::filesystem::path out_;
  std::filesystem::path folder_;  // empty once committed
};

/// Removes all but the newest `keep` checkpoints, and drafts of runs that died. keep 0: keeps all.
void prune_checkpoints(const std::filesystem::path& out, std::int64_t keep);

}  // namespace tj::trainer
