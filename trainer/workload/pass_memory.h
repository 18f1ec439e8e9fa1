// What the passes of a workload take in memory beside the tensors that it lists, by formulas: for
// forecasts of models that can't be run where they are asked for, and of a run that had no room.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/workload/precision.h"

namespace tj::trainer {

/// How the passes of a run are computed.
struct PassRule {
  std::int64_t samples = 1;  // of a pass
  Precision precision = Precision::fp32;
  bool recompute = false;
  bool is_gpu = false;
  bool casts_weights = false;  // they are float32, and products of half precision need copies
  int ranks = 1;
};

/// What of the memory something takes.
struct MemoryPart {
  std::string name = {};
  double bytes = 0;
  double shared_bytes = 0;  // beside `bytes`: what the ranks share out among themselves, the whole
  double bytes_of_rank(int ranks) const { return bytes + shared_bytes / ranks; }
};

struct PassMemory {
  /// There all the time, beside the tensors that the workload lists.
  std::vector<MemoryPart> held = {};
  /// Of all that a forward leaves for its backward, and of what is computed beside it, where the
  /// sum is highest; absent: there is no formula.
  std::optional<double> activation_bytes = {};
  std::string formula = {};  // for people: of what it is
  /// Frozen weights of which each rank keeps a part, and which a pass gathers: all parts together.
  double gathered_bytes = 0;
};

/// Flags of the workload's own with which its passes take less.
struct PassRemedy {
  std::string flag = {};  // "--vggt-shard"
  std::string note = {};  // what else it means, for people; empty: nothing
  PassMemory memory = {};
};

}  // namespace tj::trainer
