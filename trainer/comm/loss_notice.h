// The one sentence on why the ranks can't go on, in the store where all find it. Whoever comes
// first decides; ranks that end in its wake look just as lost to their neighbours.
#pragma once
#include <c10/util/intrusive_ptr.h>

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tj::trainer {

struct LossNotice {
  int rank = -1;        // to blame; -1: no single one is known
  std::string reason;   // of the outcome of that rank: "Hung", "BadData", ...
  std::string message;  // "rank 2 on node b was lost, in phase step after step 12"
};

/// Throws what the store throws. Returns what is settled: `mine`, or that of an earlier one.
LossNotice settle_loss(c10d::Store& store, const LossNotice& mine);
std::optional<LossNotice> settled_loss(c10d::Store& store);

/// This rank knows it. Rank 0, which carries the store, returns once all others do, or after a
/// bound.
void acknowledge_loss(c10d::Store& store, int rank, int world_size);

}  // namespace tj::trainer
