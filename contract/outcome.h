// How a worker ends: exit codes with a meaning, and the last words that kubelet carries into the
// pod's status. The trainer writes both, the operator reads both.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "contract/progress.h"
#include "contract/result.h"

namespace tj {

/// Exit codes of our trainer. Numbers are those of sysexits.h where one fits, so that other
/// programs may follow them.
namespace exit_code {
inline constexpr int kDone = 0;
inline constexpr int kUsage = 64;       // EX_USAGE: wrong command line
inline constexpr int kBadData = 65;     // EX_DATAERR: training data or a checkpoint can't be used
inline constexpr int kRendezvous = 69;  // EX_UNAVAILABLE: not all ranks met within the deadline
inline constexpr int kInternal = 70;    // EX_SOFTWARE: a bug, or a library failed
inline constexpr int kInputOutput =
    74;  // EX_IOERR: no checkpoint can be written, or no data read any more
inline constexpr int kInterrupted =
    75;  // EX_TEMPFAIL: asked to stop, checkpoint saved, may be resumed
inline constexpr int kPeerLost = 76;  // EX_PROTOCOL: another rank went away; this one is collateral
inline constexpr int kBadConfig = 78;    // EX_CONFIG: a retry gives the same answer
inline constexpr int kSignalBase = 128;  // 128+n: ended by signal n
}  // namespace exit_code

/// A retry gives the same answer.
bool is_permanent(int code);

/// "bad configuration", "killed by signal 9 (SIGKILL)", "exit code 3": for people.
std::string describe_exit_code(int code);

/// The last words of a worker, one JSON document in the termination message.
struct Outcome {
  std::string reason;   // UpperCamel, as Kubernetes reasons are: BadConfig, PeerLost, ...
  std::string message;  // the cause, in one sentence
  std::optional<int> rank;
  std::optional<long long> step;  // last finished optimizer step
  int attempt = 0;
  std::optional<SavedStep> last_checkpoint = {};  // complete and verified
  bool operator==(const Outcome&) const = default;
};

inline constexpr std::size_t kTerminationMessageBytesMax = 4096;  // kubelet cuts there

/// The JSON text, at most kTerminationMessageBytesMax bytes: a longer message is cut at its end,
/// and a path that does not fit is left out.
std::string to_termination_message(const Outcome& outcome);
/// Fails with Code::invalid when `text` is not one of ours: any image may write anything there.
Result<Outcome> from_termination_message(std::string_view text);

}  // namespace tj
