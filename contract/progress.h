// How a run is doing: the document that rank 0 serves at /progress and the operator polls into
// status.progress. The trainer writes it, the operator reads it; any other program may serve it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj {

/// The trainer leaves a longer path out of its last words, the operator out of the status.
inline constexpr std::size_t kCheckpointPathBytesMax = 1024;

struct SavedStep {
  long long step = 0;
  std::string path;
  bool operator==(const SavedStep&) const = default;
};

/// A rank that has not moved for longer than its phase may take.
struct StalledRank {
  int rank = 0;
  std::string node;
  std::string phase;   // as in Progress
  double seconds = 0;  // since it was last seen to move
  bool operator==(const StalledRank&) const = default;
};

struct Progress {
  int attempt = 0;
  std::string phase;    // "start", "step", "eval", "save" or "end"
  long long step = 0;   // finished optimizer steps
  long long steps = 0;  // the run ends after so many; 0: not known
  std::optional<double> loss;
  std::optional<double> tokens_per_second;  // of all ranks
  std::optional<double> mfu;                // 0 to 1; absent where the peak is not known
  std::optional<double> eta_seconds;
  std::optional<SavedStep> last_checkpoint;  // complete and verified
  /// Since the run last moved, by the clock of the one who serves it: no two clocks are compared.
  double heartbeat_age_seconds = 0;
  std::vector<StalledRank> stalled;
  bool operator==(const Progress&) const = default;
};

/// A longer document is not read.
inline constexpr std::size_t kProgressBytesMax = 16 * 1024;

/// {"attempt":0,"phase":"step","step":120,"steps":1000,"loss":3.12,"tokensPerSecond":1234.5,
///  "mfu":0.41,"etaSeconds":234,"lastCheckpoint":{"step":100,"path":"/out/step-100"},
///  "heartbeatAgeSeconds":0.4,"stalled":[{"rank":3,"node":"b","phase":"step","seconds":12.5}]}
/// What is absent is left out; a number that is not finite is too.
std::string to_progress_document(const Progress& progress);
/// Only `step` must be there. Fails with Code::invalid, naming the field, when it is missing or a
/// known field has another type; unknown fields are ignored.
Result<Progress> from_progress_document(std::string_view text);

}  // namespace tj
