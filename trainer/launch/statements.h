// What WORLD_SIZE counts, where the variables alone can't tell: each launcher states what it was
// given, and the set of statements shows it. Pure; statement_exchange.h collects them.
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
struct Statement {
  int world_size = 1;   // WORLD_SIZE
  int rank = 0;         // RANK
  int gpus = 0;         // visible there
  std::string machine;  // equal for launchers that share GPUs: node, host name and PID namespace
  std::string node;     // for people
  bool operator==(const Statement&) const = default;
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
  std::string because;  // in words, with the statements that decided
  bool operator==(const WorldDecision&) const = default;
};

/// More statements are needed; the text says what they may show.
struct Undecided {
  std::string text;
};

/// A decision for the launcher with rank `asking`. `is_quiet`: no statement has come for so long
/// that no other launcher seems to exist. Contradictions are refused with all statements named.
using Settlement = std::variant<Undecided, WorldDecision, Error>;
Settlement weigh_statements(std::span<const Statement> statements, int asking, bool is_quiet);

/// "rank 0 of 16 on node a (8 GPUs), ...": all of them by rank, at most kStatementsNamedMax.
std::string describe_statements(std::span<const Statement> statements);
inline constexpr int kStatementsNamedMax = 16;

/// An ambiguous identity as decided; `gpus` are the visible ones.
Identity decided(Identity identity, const WorldDecision& decision, int gpus);

}  // namespace tj::trainer
