// What a checkpoint holds of the way in which ranks became the same, and what of it another run
// can take over. Pure.
#pragma once
#include <string>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/train/sync_plan.h"

namespace tj::trainer {

/// Of a run on so many ranks.
SyncMark sync_mark_of(const SyncPlan& plan, int world_size);

/// The stems of those groups of the checkpoint that a run of this mark reads: what a way to
/// synchronise has held back is of use to the same way, what is of each rank to as many ranks.
GroupStems sync_groups_of(const Manifest& manifest, const SyncMark& asked);

/// What becomes of those that it does not read; empty: there are none.
std::string left_line(const Manifest& manifest, const SyncMark& asked);

}  // namespace tj::trainer
