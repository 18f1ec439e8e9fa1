// The checkpoints of a run: folders step-000300 in --out. One appears whole or not at all, and is
// verified when read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/claim.h"
#include "trainer/checkpoint/manifest.h"

namespace tj::trainer {

// The groups of tensors: each one file of this name, or several.
inline constexpr const char* kModelStem = "model";
inline constexpr const char* kOptimizerStem = "optimizer";
inline constexpr const char* kEmaStem = "ema";
inline constexpr const char* kTrainingStem = "training";    // tensors that only the training needs
inline constexpr const char* kMemoryStem = "memory";        // what passes have left for later steps
inline constexpr const char* kReductionStem = "reduction";  // what a compressed reduction owes
// Of ways to synchronise whose ranks differ, or that hold something back between two steps:
inline constexpr const char* kSyncStem = "sync";    // the same on all ranks
inline constexpr const char* kRanksStem = "ranks";  // the moments of each rank
inline constexpr const char* kRoundStem = "round";  // the weights of each rank, between two syncs
using GroupStems = std::set<std::string>;
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kManifestFile = "manifest.json";

std::string checkpoint_name(std::int64_t step);
/// By the number in their names.
bool is_newer_checkpoint(const std::string& left, const std::string& right);
/// -1 for a number that is none of a step.
std::int64_t step_of_checkpoint(const std::string& name);

/// Names of all checkpoint folders in `out`, newest first, verified or not. None when `out` is not
/// there.
std::vector<std::string> checkpoint_names(const std::filesystem::path& out);

struct FoundCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

struct DamagedCheckpoint {
  std::string name;
  std::string cause;  // "model.safetensors: is cut short: ..."
  bool operator==(const DamagedCheckpoint&) const = default;
};
/// "step-000050: model.safetensors: is cut short: ..."
std::string describe(const DamagedCheckpoint& damaged);

struct CheckpointSearch {
  std::optional<FoundCheckpoint> found;
  std::vector<DamagedCheckpoint> damaged;  // all that are newer than the one found, newest first
};

/// Verifies sizes and hashes, newest first, until one is whole. Nothing is found once `should_stop`
/// says so; it is asked after each megabyte, on several threads.
CheckpointSearch newest_usable_checkpoint(const std::filesystem::path& out,
                                          const std::function<bool()>& should_stop = {});

/// A damaged checkpoint whose name is free again.
struct SetAside {
  DamagedCheckpoint damaged;
  std::string as;  // its name now
};

/// Gives a checkpoint another name, which no search finds and nothing removes, and returns it:
/// damaged-step-000050. What is saved from here on is then the newest by name, too.
Result<std::string> set_aside(const std::filesystem::path& out, const std::string& name);

/// Creates `out` and proves that it can be written to.
Result<void> prepare_out_folder(const std::filesystem::path& out);

/// The folder of a checkpoint in the making; no search finds it. `run_id` keeps the ranks of one
/// run together, and apart from what an earlier run left.
std::filesystem::path draft_path(const std::filesystem::path& out, std::int64_t step,
                                 const std::string& run_id);

/// A checkpoint in the making. Its owner removes it unless committed; other writers leave it.
class CheckpointDraft {
 public:
  static Result<CheckpointDraft> begin(const std::filesystem::path& out, std::int64_t step,
                                       const std::string& run_id = "", bool is_owner = true);
  const std::filesystem::path& folder() const { return folder_; }
  /// Writes the manifest, flushes, and gives the folder its name; what has that name is set aside.
  /// Returns the final path.
  /// Fails as check_claim() when it is not this attempt's to do.
  Result<std::filesystem::path> commit(const Manifest& manifest, const OutClaim& claim = {});

  CheckpointDraft(CheckpointDraft&& other) noexcept;
  CheckpointDraft& operator=(CheckpointDraft&&) = delete;
  ~CheckpointDraft();

 private:
  CheckpointDraft(std::filesystem::path out, std::filesystem::path folder, bool is_owner);
  std::filesystem::path out_;
  std::filesystem::path folder_;  // empty once committed
  bool is_owner_;
};

/// Removes a checkpoint, of which a kill leaves either all or a draft.
void remove_checkpoint(const std::filesystem::path& out, const std::string& name);

/// Removes drafts of runs that died, and what is left of removed checkpoints. Before the first save
/// of a run.
void sweep_drafts(const std::filesystem::path& out);

}  // namespace tj::trainer
