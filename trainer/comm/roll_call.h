// Who is not there, in words that lead to a machine: ranks by worker, the worker by pod or node.
// Pure.
#pragma once
#include <map>
#include <span>
#include <string>

namespace tj::trainer {

inline constexpr int kAbsentNamedMax = 8;  // more are counted only

/// What is known of the workers that ranks belong to.
struct RollCall {
  int local_world_size = 1;          // ranks of each worker, in a row
  std::string job;                   // names the pods; empty outside of a job
  std::map<int, std::string> nodes;  // of workers some rank of which has come
};

/// "ranks 8 to 15 (mnist-worker-1), rank 17 (worker 2, node b)"; `ranks` ascend.
std::string describe_absent(std::span<const int> ranks, const RollCall& known);

}  // namespace tj::trainer
