// Fencing: a process of an attempt that is over may still run, on a node that the operator can't
// reach. attempt.json in --out says whose the checkpoints are; whoever finds a later attempt there,
// or another job, changes none of them any more. What it can't promise: docs/trainer.md, Fencing.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr const char* kClaimFile = "attempt.json";

/// An attempt of a job of the operator. Without a uid (valid UTF-8) there is no job: nothing is
/// claimed, and every check is passed.
struct OutClaim {
  std::string job_uid;
  int attempt = 0;
  bool operator==(const OutClaim&) const = default;
};

/// At the start of a run, before it looks for a checkpoint: the folder is its own from here on.
/// Fails with Code::conflict when a later attempt of the job has begun.
Result<void> claim_out(const std::filesystem::path& out, const OutClaim& claim);

/// Before a checkpoint gets its name, or loses it. Fails with Code::conflict when a later attempt
/// or another job has begun meanwhile, with another code when that can't be known.
Result<void> check_claim(const std::filesystem::path& out, const OutClaim& claim);

}  // namespace tj::trainer
