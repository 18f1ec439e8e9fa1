#include "cli/launch_words.h"

#include "contract/names.h"

namespace tj {
namespace {

constexpr int kNodesMax = 100'000;
constexpr int kGpusMax = 1024;  // as trainer launch

Error wrong(std::string flag, std::string message) {
  return Error{Code::invalid, std::move(message), std::move(flag), {}};
}

/// A step of one task is a person's shell (srun --pty bash).
bool is_task_of_many(const EnvLookup& env) {
  return env("SLURM_PROCID") && env("SLURM_STEP_NUM_TASKS").value_or("1") != "1";
}

/// Who a worker is must be said once.
Result<void> check_place(const EnvLookup& env) {
  const auto told_by = [](const char* variable, const char* who) {
    return wrong(variable, std::string("is set: ") + who +
                               " has told this worker who it is; use `trainer launch -- COMMAND`, "
                               "which reads that (`trainer env --explain` shows it)");
  };
  if (env(names::kEnvJobUid)) return told_by(names::kEnvJobUid, "the operator");
  if (is_task_of_many(env)) return told_by("SLURM_PROCID", "srun");
  return {};
}

constexpr const char* kNoNodeRank = "is missing; it must be the number of this node, from 0";

/// --node-rank, NODE_RANK, or what the master's address shows: it is node 0, and of two nodes the
/// other one is node 1.
Result<int> node_rank(const LaunchFlags& flags, int nodes, const EnvLookup& env,
                      const IsOwnAddress& is_own_address) {
  if (!flags.node_rank.empty()) return parse_int("--node-rank", flags.node_rank, 0, nodes - 1);
  if (const auto told = env("NODE_RANK")) return parse_int("NODE_RANK", *told, 0, nodes - 1);
  if (nodes == 1) return 0;
  const auto is_master = is_own_address(flags.master);
  if (!is_master) return wrong("--master", describe(is_master.error()));
  if (*is_master) return 0;
  if (nodes == 2) return 1;
  return wrong("--node-rank", kNoNodeRank);
}

}  // namespace

Result<std::vector<std::string>> launch_words(const LaunchFlags& flags, const EnvLookup& env,
                                              const IsOwnAddress& is_own_address) {
  if (const auto free = check_place(env); !free) return free.error();
  if (flags.command.empty())
    return wrong("tj launch", "has no command; it must stand behind --, as in -- python3 train.py");
  const auto nodes = parse_int("--nodes", flags.nodes, 1, kNodesMax);
  if (!nodes) return nodes.error();
  if (flags.gpus_per_node.empty()) {
    return wrong("--gpus-per-node",
                 "is missing; it must be the processes of each node, one for "
                 "each GPU (1 without any)");
  }
  const auto gpus = parse_int("--gpus-per-node", flags.gpus_per_node, 1, kGpusMax);
  if (!gpus) return gpus.error();
  if (*nodes > 1 && flags.master.empty())
    return wrong("--master", "is missing; it must be the host name or address of node 0");
  const auto rank = node_rank(flags, *nodes, env, is_own_address);
  if (!rank) return rank.error();
  std::vector<std::string> words = {"launch",
                                    "--world-size",
                                    std::to_string(*nodes * *gpus),
                                    "--gpus-per-node",
                                    std::to_string(*gpus),
                                    "--node-rank",
                                    std::to_string(*rank)};
  if (!flags.master.empty()) words.insert(words.end(), {"--master-addr", flags.master});
  if (!flags.port.empty()) {
    const auto port = parse_int("--port", flags.port, 1, 65535);
    if (!port) return port.error();
    words.insert(words.end(), {"--master-port", std::to_string(*port)});
  }
  words.emplace_back("--");
  words.insert(words.end(), flags.command.begin(), flags.command.end());
  return words;
}

}  // namespace tj
