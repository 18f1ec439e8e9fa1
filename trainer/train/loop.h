// The training itself: from the first step to the last, or to the step after which somebody asks to
// stop.
#pragma once
#include <optional>

#include "trainer/comm/communicator.h"
#include "trainer/data/text_folder.h"
#include "trainer/train/failure.h"
#include "trainer/train/plan.h"

namespace tj::trainer {

struct LoopInputs {
  const TrainPlan& plan;
  const TextFolder& text;
  Communicator& communicator;
};

struct LoopEnd {
  std::optional<Failure> failure;
  std::int64_t last_step = 0;  // finished
};

/// Collective. Rank 0 speaks, reads and writes; the others get what they need from it.
LoopEnd train(const LoopInputs& inputs);

}  // namespace tj::trainer
