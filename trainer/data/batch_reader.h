// Reads batches ahead of training, in their own threads, so that a step finds its tokens in memory.
// Which tokens a batch has is decided by the sampler alone: neither the threads nor how far they
// are ahead change anything.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "contract/result.h"
#include "trainer/data/sampler.h"
#include "trainer/data/token_source.h"

namespace tj::trainer {

inline constexpr int kDataThreadsMax = 256;
/// Batches that are ready or being read, for each thread; the bound of the queue.
inline constexpr std::int64_t kBatchesAheadPerThread = 2;

struct BatchOrder {
  SampleSpace space;
  BatchShare share;
  std::int64_t batch_size = 0;   // samples of one step, over all ranks and passes
  std::int64_t next_sample = 0;  // the first of the first step
};

/// What one pass trains on: consecutive samples.
struct Batch {
  std::int64_t first_sample = 0;
  std::vector<std::int32_t> tokens;  // [micro_batch, sequence_tokens + 1] in rows
};

class BatchReader {
 public:
  /// `source` must outlive the reader. Needs threads >= 1.
  BatchReader(const TokenSource& source, const BatchOrder& order, int threads);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /// The next pass's batch. Fails with Code::invalid on damaged data. How long the disk may take is
  /// for the watchdog to judge, by the limit of the phase.
  Result<Batch> next();

 private:
  void run();
  Result<Batch> read(std::int64_t number) const;

  const TokenSource& source_;
  const BatchOrder order_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable changed_;
  std::vector<std::optional<Result<Batch>>> ring_;  // batch n lies in slot n % size
  std::int64_t next_to_read_ = 0;
  std::int64_t next_to_take_ = 0;
  bool is_stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tj::trainer
