// What a compressed reduction owed when a checkpoint was written, for the run that goes on.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/communicator.h"
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

/// Fills tensors, or their parts, from one group of a checkpoint's files. Collective.
using GroupFiller = std::function<std::optional<Failure>(const std::vector<NamedTensor>&)>;

struct ReductionToLoad {
  const TrainPlan& plan;
  Communicator& communicator;
  const ReductionMark& mark;
};

/// Fills `state.reduction`. What another codec, or another rank of PowerSGD's, has left is of use
/// as far as it fits; another number of ranks owes in equal shares. Collective.
std::optional<Failure> load_reduction(const ReductionToLoad& load, const StateTensors& state,
                                      const GroupFiller& fill_tensors);

}  // namespace tj::trainer
