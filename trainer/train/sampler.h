// Which sample comes when: a pure function of (seed, global sample number), whatever the number of
// ranks. Nothing is drawn and nothing is skipped, so the place in the data is one number and a
// resume is exact.
#pragma once
#include <cstdint>

#include "trainer/workload/sample_source.h"

namespace tj::trainer {

struct SampleOrder {
  std::uint64_t seed = 0;
  std::int64_t sample_count = 0;  // of the source
};

/// Number `number` (from 0, without end) of the training. Each epoch visits each sample once, in an
/// order of its own. Needs sample_count >= 1.
Sample sample_at(const SampleOrder& order, std::int64_t number);

/// How one optimizer step's samples are shared out: by rank, then by pass, so that a rank's samples
/// lie side by side.
struct BatchShare {
  std::int64_t micro_batch = 0;  // samples of one rank in one pass
  std::int64_t passes = 1;       // of one rank in one step
  int rank = 0;
};

/// First sample of this rank's pass number `pass`, in a step that begins with `step_first_sample`.
std::int64_t first_sample(const BatchShare& share, std::int64_t step_first_sample,
                          std::int64_t pass);

}  // namespace tj::trainer
