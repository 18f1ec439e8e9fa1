// Where a run begins: at the newest checkpoint that is whole, or from scratch. Where all ranks see
// the same disk each reads a part; else rank 0 reads, and the others get it over the network.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/communicator.h"
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

struct StateTensors;

struct ResumeInputs {
  const TrainPlan& plan;
  const Workload& workload;
  Communicator& communicator;
  OutClaim claim;
  bool is_shared = false;  // all ranks see the same --out
  PhaseClock& clock;       // hears of each megabyte and each tensor that is read
  DataMark data;           // at hand
};

struct Beginning {
  std::optional<Failure> failure;
  std::optional<Manifest> manifest;  // on all ranks; none: from scratch
  GroupStems read;                   // of tensors that a checkpoint has filled
  std::string checkpoint_path;       // rank 0 only, as is the next
  std::vector<SetAside> set_aside;   // damaged ones that were newer
};

/// What a checkpoint of this run says of itself, and a resumed run must share.
Numerics numerics_of(const TrainPlan& plan);

/// Collective. Fills `state` with what was saved, and makes it the same on all ranks in any case.
Beginning begin_from_checkpoint(const ResumeInputs& inputs, const StateTensors& state);

}  // namespace tj::trainer
