#include "trainer/launch/statements.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace tj::trainer {
namespace {

std::vector<Statement> by_rank(std::span<const Statement> statements) {
  std::vector<Statement> sorted(statements.begin(), statements.end());
  std::ranges::stable_sort(sorted, {}, &Statement::rank);
  return sorted;
}

Error contradiction(const std::string& what, std::span<const Statement> statements) {
  return {.code = Code::invalid,
          .message = what + "; the statements: " + describe_statements(statements) +
                     "; --convention workers or --convention processes says what it counts",
          .subject = "WORLD_SIZE"};
}

/// What no meaning of WORLD_SIZE could bring together.
std::optional<Error> find_contradiction(const std::vector<Statement>& statements) {
  const Statement& first = statements.front();
  const auto differs = [&](auto member) {
    return std::ranges::any_of(
        statements, [&](const Statement& statement) { return statement.*member != first.*member; });
  };
  if (differs(&Statement::world_size))
    return contradiction("differs between the workers", statements);
  if (differs(&Statement::gpus)) {
    return contradiction("can't be understood where the workers show different numbers of GPUs",
                         statements);
  }
  const auto twice = std::ranges::adjacent_find(statements, {}, &Statement::rank);
  if (twice == statements.end()) return std::nullopt;
  return contradiction("has RANK " + std::to_string(twice->rank) + " twice", statements);
}

std::map<std::string, std::vector<int>> ranks_by_machine(const std::vector<Statement>& statements) {
  std::map<std::string, std::vector<int>> machines;
  for (const Statement& statement : statements)
    machines[statement.machine].push_back(statement.rank);
  return machines;
}

std::string count(std::size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

/// Several launchers on one machine: each must be one process of it.
Settlement weigh_separate(const std::vector<Statement>& statements, int asking) {
  const auto gpus = static_cast<std::size_t>(statements.front().gpus);
  const auto world_size = static_cast<std::size_t>(statements.front().world_size);
  const auto machines = ranks_by_machine(statements);
  WorldDecision decision{.meaning = WorldMeaning::processes};
  for (const auto& [machine, ranks] : machines) {
    if (ranks.size() > gpus) {
      return contradiction("counts " + count(ranks.size(), "launcher") +
                               " on one node, which has " + count(gpus, "GPU"),
                           statements);
    }
    const auto mine = std::ranges::find(ranks, asking);
    if (mine != ranks.end()) decision.local_rank = static_cast<int>(mine - ranks.begin());
  }
  if (statements.size() < world_size) return Undecided{"several launchers run on one node"};
  for (const auto& [machine, ranks] : machines) {
    const bool is_full = ranks.size() == gpus;
    const bool is_in_a_row = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size()) &&
                             ranks.front() % static_cast<int>(gpus) == 0;
    if (is_full && is_in_a_row) continue;
    return contradiction("counts processes, but not one for each of the " + std::to_string(gpus) +
                             " GPUs of each node in a row",
                         statements);
  }
  decision.because = count(statements.size(), "launcher") + " on " +
                     count(machines.size(), "node") + ", one for each GPU";
  return decision;
}

/// One launcher on each machine, and too few of them for one each.
bool fills_world_with_gpus(const std::vector<Statement>& statements) {
  const int gpus = statements.front().gpus;
  int next = 0;
  for (const Statement& statement : statements) {
    if (statement.rank != next) return false;
    next += gpus;
  }
  return next == statements.front().world_size;
}

}  // namespace

std::string_view to_string(WorldMeaning meaning) {
  switch (meaning) {
    case WorldMeaning::workers: return "workers";
    case WorldMeaning::nodes: return "nodes";
    case WorldMeaning::processes: break;
  }
  return "processes";
}

std::optional<WorldMeaning> world_meaning_named(std::string_view word) {
  using enum WorldMeaning;
  for (const auto meaning : {workers, nodes, processes}) {
    if (word == to_string(meaning)) return meaning;
  }
  return std::nullopt;
}

std::string describe_statements(std::span<const Statement> statements) {
  std::string text;
  int named = 0;
  for (const Statement& statement : by_rank(statements)) {
    if (named++ == kStatementsNamedMax)
      return text + " and " + std::to_string(statements.size() - kStatementsNamedMax) + " more";
    text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(statement.rank) +
            " of " + std::to_string(statement.world_size) + " on node " + statement.node + " (" +
            count(static_cast<std::size_t>(statement.gpus), "GPU") + ")";
  }
  return text;
}

Settlement weigh_statements(std::span<const Statement> statements, int asking, bool is_quiet) {
  if (statements.empty()) return Undecided{"nobody has come"};
  const auto sorted = by_rank(statements);
  if (auto error = find_contradiction(sorted)) return *std::move(error);
  const auto machines = ranks_by_machine(sorted);
  if (machines.size() < sorted.size()) return weigh_separate(sorted, asking);
  const auto world_size = static_cast<std::size_t>(sorted.front().world_size);
  if (sorted.size() == world_size) {
    return WorldDecision{.meaning = WorldMeaning::workers,
                         .because = count(sorted.size(), "launcher") + " on " +
                                    count(machines.size(), "node") + ", one on each"};
  }
  if (!fills_world_with_gpus(sorted)) return Undecided{"the other launchers are missing"};
  if (!is_quiet) {
    return Undecided{count(sorted.size(), "launcher") +
                     " would be all if it counts processes, and others may still come if not"};
  }
  return WorldDecision{.meaning = WorldMeaning::nodes,
                       .because = count(sorted.size(), "launcher") + " came, each on a node of " +
                                  count(static_cast<std::size_t>(sorted.front().gpus), "GPU")};
}

Identity decided(Identity id, const WorldDecision& decision, int gpus) {
  const std::string origin = "computed: " + decision.because;
  id.is_ambiguous = false;
  id.notes.push_back(
      "WORLD_SIZE counts " +
      std::string(decision.meaning == WorldMeaning::workers ? "workers" : "processes") + ": " +
      decision.because);
  if (decision.meaning == WorldMeaning::workers) return id;
  const int world_size = id.worker_count.value;
  const int rank = id.worker_index.value;
  id.convention = Convention::processes;
  id.because = "what all launchers were given";
  id.worker_count = {world_size / gpus, "computed: WORLD_SIZE / GPUs"};
  id.worker_index = {rank / gpus, "computed: RANK / GPUs"};
  id.nproc = {gpus, "GPUs"};
  if (decision.meaning == WorldMeaning::processes) {
    id.rank = Fact<int>{rank, "RANK"};
    id.local_rank = Fact<int>{decision.local_rank, origin};
  }
  return id;
}

}  // namespace tj::trainer
