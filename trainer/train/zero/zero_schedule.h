// ZeRO (Rajbhandari et al. 2020): which tensors are sharded together, and in which step of a pass
// their weights are gathered, let go, and their gradients reduced. The order is fixed before
// training, from sizes alone, so that all ranks begin the same collectives in the same order even
// when one of them leaves out a block. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/workload/block_hooks.h"

namespace tj::trainer {

struct ZeroOptions {
  int stage = 0;  // 0: plain data parallel; 1: moments sharded; 2: and gradients; 3: and weights
  std::optional<int> group_size;  // ranks that share out among themselves; absent: all do
  // Those below count elements and are of stage 3.
  std::int64_t persist = 0;               // tensors up to this size stay whole everywhere
  std::optional<std::int64_t> prefetch;   // gathered ahead; absent: the next block, whatever it is
  std::int64_t live_max = 1'000'000'000;  // gathered at one time; ahead of need only
  std::int64_t reuse = 0;                 // not let go when needed again within so many
  bool has_more_passes = false;           // in a step: the next pass needs them again, too
  bool operator==(const ZeroOptions&) const = default;
};

/// Tensors that are sharded, gathered and reduced as one.
struct ZeroUnitPlan {
  std::vector<std::size_t> tensors;
  std::int64_t elements = 0;
  bool is_whole = true;  // weights are there all the time; false: only while needed
  bool operator==(const ZeroUnitPlan&) const = default;
};

/// One unit for each block, of the tensors that no earlier block has; and at stage 3 one for all
/// that stay whole because they are small. `sizes`: elements of each tensor; 0: not trained, and in
/// no unit.
std::vector<ZeroUnitPlan> plan_units(std::span<const std::int64_t> sizes,
                                     std::span<const ModelBlock> blocks,
                                     const ZeroOptions& options);

/// One block's forward or backward. All lists hold units.
struct ZeroStep {
  std::vector<std::size_t> gather;   // begun before it, in this order
  std::vector<std::size_t> need;     // of those that come and go
  std::vector<std::size_t> release;  // after it; others stay, for the next pass of the step too
  std::vector<std::size_t> reduce;   // after it: their gradients are complete
  bool operator==(const ZeroStep&) const = default;
};

/// The steps of a pass: forward of each block, then backward of each in reverse order.
std::vector<ZeroStep> plan_steps(std::span<const ZeroUnitPlan> units,
                                 std::span<const ModelBlock> blocks, const ZeroOptions& options);

struct GatheredElements {
  std::int64_t of_step = 0;  // in all of its passes
  std::int64_t at_once = 0;  // that there is memory for
  bool operator==(const GatheredElements&) const = default;
};
/// What ranks gather in an optimizer step of `passes`, by plan_steps().
GatheredElements gathered_elements(std::span<const ZeroUnitPlan> units,
                                   std::span<const ZeroStep> steps, std::int64_t passes);

/// One line for each step, for tests and reviewers.
std::string schedule_text(std::span<const ZeroStep> steps);

}  // namespace tj::trainer
