// How long all-reduces take between these ranks, tried out in a fraction of a second.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/train/bucket_plan.h"

namespace tj::trainer {

/// Collective: the same numbers on all ranks, means over them. `backward_seconds`: of this rank.
ReduceProfile probe_reduction(Communicator& communicator, double backward_seconds);

}  // namespace tj::trainer
