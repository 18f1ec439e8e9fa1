// All ranks must end after the same step: one whose --data or flags say otherwise would leave the
// others waiting in the middle of a collective.
#pragma once
#include <optional>

#include "trainer/comm/communicator.h"
#include "trainer/train/plan.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

/// Collective. A failure on all ranks alike where one has another number of steps than rank 0.
std::optional<Failure> agree_on_length(Communicator& communicator, const TrainPlan& plan);

}  // namespace tj::trainer
