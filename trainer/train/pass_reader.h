// The batches of passes as tensors on the device. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include "trainer/train/batch_reader.h"
#include "trainer/train/plan.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/model.h"

namespace tj::trainer {

struct Pass {
  Batch batch;  // [micro_batch, ...]
  std::int64_t first_sample = 0;
  std::int64_t weight = 0;  // how much in it counts
};

class PassReader {
 public:
  /// This rank's share of each batch of `source`, from `next_sample` on. All arguments outlive it.
  PassReader(const SampleSource& source, const TrainPlan& plan, int rank, std::int64_t next_sample,
             PhaseClock& clock);
  /// Waits for it, counted as data. Throws BadDataError.
  Pass next();

 private:
  const TrainPlan& plan_;
  PhaseClock& clock_;
  BatchReader batches_;
};

}  // namespace tj::trainer
