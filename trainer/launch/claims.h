// What WORLD_SIZE counts, where the variables alone can't tell: each launcher claims what it was
// given, and the set of claims shows it. Pure; claims_exchange.h collects them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/result.h"
#include "trainer/launch/identity.h"

namespace tj::trainer {

/// One launcher, as its environment describes it.
struct Claim {
  int world_size = 1;   // WORLD_SIZE
  int rank = 0;         // RANK
  int gpus = 0;         // visible there
  std::string machine;  // equal for launchers that share GPUs: node, host name and PID namespace
  std::string node;     // for people
  bool operator==(const Claim&) const = default;
};

enum class WorldMeaning {
  workers,    // WORLD_SIZE counts launchers, and each starts a process for each GPU
  nodes,      // WORLD_SIZE counts processes, RANK is the first of a node that one launcher starts
  processes,  // WORLD_SIZE counts processes, and each was started by a launcher of its own
};
std::string_view to_string(WorldMeaning meaning);
std::optional<WorldMeaning> world_meaning_named(std::string_view word);

struct WorldDecision {
  WorldMeaning meaning = WorldMeaning::workers;
  int local_rank = 0;   // of the one process, for `processes`
  std::string because;  // in words, with the claims that decided
  bool operator==(const WorldDecision&) const = default;
};

/// More claims are needed; the text says what they may show.
struct Undecided {
  std::string text;
};

/// A decision for the launcher with rank `asking`. `is_settled`: no claim has come for so long that
/// no other launcher seems to exist. Contradictions are refused with all claims named.
using ClaimVerdict = std::variant<Undecided, WorldDecision, Error>;
ClaimVerdict weigh_claims(std::span<const Claim> claims, int asking, bool is_settled);

/// "rank 0 of 16 on node a (8 GPUs), ...": all of them by rank, at most kClaimsNamedMax.
std::string describe_claims(std::span<const Claim> claims);
inline constexpr int kClaimsNamedMax = 16;

/// An ambiguous identity as decided; `gpus` are the visible ones.
Identity decided(Identity identity, const WorldDecision& decision, int gpus);

}  // namespace tj::trainer
