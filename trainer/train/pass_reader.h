// The batches of passes as tensors on the device. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

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
  /// Waits for it, counted as data. Throws BadDataError. On a GPU the one after it is on its way
  /// there already, in a stream beside that of the training, if it has been read by then.
  Pass next();

 private:
  struct OnItsWay {
    Result<Pass> pass;
    std::optional<c10::Event> arrived;  // none on the CPU
  };
  OnItsWay send(Result<HostBatch> batch) const;
  Pass arrived(OnItsWay sent) const;

  PhaseClock& clock_;
  const c10::Device device_;
  const std::optional<c10::Stream> stream_;  // none on the CPU
  BatchReader batches_;
  std::optional<OnItsWay> ahead_;
};

}  // namespace tj::trainer
