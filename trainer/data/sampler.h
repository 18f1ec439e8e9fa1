// Which tokens a sample is: a pure function of (seed, global sample number), whatever the number of
// ranks. Nothing is drawn and nothing is skipped, so the place in the data is one number and a
// resume is exact.
#pragma once
#include <cstdint>

namespace tj::trainer {

struct SampleSpace {
  std::uint64_t seed = 0;
  std::int64_t token_count = 0;
  std::int64_t sequence_tokens = 0;  // inputs of one sample; it reads one more, the last target
  bool operator==(const SampleSpace&) const = default;
};

/// Samples that tile the tokens once; 0 when there are too few tokens for one.
std::int64_t samples_per_epoch(const SampleSpace& space);

/// First token of sample `sample` (from 0, without end). Each epoch visits each tile once, in its
/// own order. Needs samples_per_epoch() >= 1.
std::int64_t sample_offset(const SampleSpace& space, std::int64_t sample);

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
