#include "trainer/launch/failure.h"

#include <sys/wait.h>

#include <algorithm>

namespace tj::trainer {
namespace {

constexpr std::size_t kForeignWordsBytesMax = 1024;

std::string reason_of(int code) {
  switch (code) {
    case exit_code::kUsage: return "Usage";
    case exit_code::kBadData: return "BadData";
    case exit_code::kRendezvous: return "RendezvousFailed";
    case exit_code::kInternal: return "InternalError";
    case exit_code::kInputOutput: return "InputOutput";
    case exit_code::kInterrupted: return "Interrupted";
    case exit_code::kPeerLost: return "PeerLost";
    case exit_code::kBadConfig: return "BadConfig";
    default: return code > exit_code::kSignalBase ? "Killed" : "Error";
  }
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.resize(std::min(text.size(), kForeignWordsBytesMax));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string who(const ProcessEnd& end) {
  return "rank " + std::to_string(end.env.rank) + " (local rank " +
         std::to_string(end.env.local_rank) + ", pid " + std::to_string(end.pid) + ")";
}

/// "exit code 3: <the cause in the process's own words, or in ours>"
std::string what_happened(const ProcessEnd& end, const std::string& words) {
  const auto outcome = from_termination_message(words);
  std::string cause = one_line(outcome ? outcome->message : words);
  if (cause.empty()) cause = end.cause;
  return describe_exit_code(end.exit_code) + (cause.empty() ? "" : ": " + cause);
}

}  // namespace

int exit_code_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return exit_code::kSignalBase + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

bool blames_later(const ProcessEnd& first, const ProcessEnd& later) {
  const bool is_cause = later.exit_code != exit_code::kDone &&
                        later.exit_code != exit_code::kPeerLost &&
                        later.exit_code != exit_code::kInterrupted && !later.stopped_by_us;
  return first.exit_code == exit_code::kPeerLost && is_cause;
}

Outcome outcome_of(const ProcessEnd& end, const std::string& words) {
  if (auto outcome = from_termination_message(words)) {
    if (!outcome->rank) outcome->rank = end.env.rank;
    return *std::move(outcome);
  }
  return Outcome{.reason = reason_of(end.exit_code),
                 .message = who(end) + ": " + what_happened(end, words),
                 .rank = end.env.rank,
                 .step = {},
                 .attempt = end.env.attempt};
}

std::string describe_failure(const ProcessEnd& end, const std::string& words) {
  const std::string what = what_happened(end, words);
  if (end.env.local_world_size == 1) return who(end) + " failed: " + what;
  return who(end) + " failed first: " + what + "; the others were stopped";
}

}  // namespace tj::trainer
