// What the ranks have measured of each other, and what it means: latency, bandwidth, clocks,
// versions. Pure; measure.h measures.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/check/finding.h"

namespace tj::trainer {

/// What one worker has found on its own; goes from `trainer check` through its engine to rank 0.
struct WorkerFacts {
  int index = 0;
  std::string node;
  std::string trainer;    // versions
  std::string libtorch;   // empty: the engine has not said
  std::string build;      // of the engine: its build id
  std::string interface;  // on the route to the master
  int link_mbps = 0;      // of that interface; 0: not known
  std::vector<Finding> findings;
};
nlohmann::json to_json(const WorkerFacts& facts);
/// Fails with Code::invalid on anything that to_json() does not write.
Result<WorkerFacts> worker_facts_from_json(const nlohmann::json& document);

/// "worker 1 (node-b)"
std::string name_of(const WorkerFacts& worker);

/// What rank 0 has found of another rank by sending it a few bytes and waiting for the answer.
struct RankFacts {
  int rank = 0;
  double round_trip_s = 0;    // the shortest
  double clock_offset_s = 0;  // its clock minus that of rank 0, at half of that round trip
};

/// Two ranks that sent to each other at once.
struct PairFacts {
  int left = 0;
  int right = 0;
  double bytes_per_second = 0;  // each way
};

struct LinkFacts {
  std::vector<WorkerFacts> workers;  // by index
  int ranks_per_worker = 1;
  std::vector<RankFacts> ranks;  // the first kPingedMax of them, without rank 0
  std::vector<PairFacts> pairs;  // neighbours
  std::int64_t all_reduce_bytes = 0;
  double all_reduce_s = 0;       // 0: nothing was measured
  double all_reduce_core_s = 0;  // the same, of all cores of one process
  std::string transport;         // "Gloo", "NCCL"

  int world_size() const { return static_cast<int>(workers.size()) * ranks_per_worker; }
  /// Bytes that each rank sends, and receives, in a second of the all-reduce.
  /// t = 2(N-1)/N * S/B (nccl-tests, PERFORMANCE.md: bus bandwidth).
  double bytes_per_second() const;
};
inline constexpr int kPingedMax = 256;

/// A node without time synchronisation: lines of two logs can't be put in order any more.
inline constexpr double kClockWarnS = 2;
/// As long as leases, heartbeats and short-lived tokens last: they end before they begin.
inline constexpr double kClockFatalS = 30;

/// The ranks have met: what a worker lacked for that when it looked, a name in DNS that was not
/// there yet or a port, is there now.
void settle_meeting(std::vector<WorkerFacts>& workers);

std::vector<Finding> judge_versions(const LinkFacts& facts);
std::vector<Finding> judge_clocks(const LinkFacts& facts);
std::vector<Finding> judge_latency(const LinkFacts& facts);
std::vector<Finding> judge_pairs(const LinkFacts& facts);
Finding judge_all_reduce(const LinkFacts& facts);

/// All of them; those that need several ranks only where there are.
std::vector<Finding> judge_links(const LinkFacts& facts);

}  // namespace tj::trainer
