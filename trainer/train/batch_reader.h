// Reads batches ahead of training, in their own threads, so that a step finds its samples in
// memory. Which samples a batch has is decided by the sampler alone: neither the threads nor how
// far they are ahead change anything.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "contract/result.h"
#include "trainer/train/sampler.h"
#include "trainer/workload/sample_source.h"

namespace tj::trainer {

inline constexpr int kDataThreadsMax = 256;
/// Batches that are ready or being read, for each thread; the bound of the queue.
inline constexpr std::int64_t kBatchesAheadPerThread = 2;

struct BatchOrder {
  std::uint64_t seed = 0;
  BatchShare share;
  std::int64_t batch_size = 0;   // samples of one step, over all ranks and passes
  std::int64_t next_sample = 0;  // the first of the first step
};

/// What one pass trains on: consecutive samples.
struct HostBatch {
  std::int64_t first_sample = 0;
  std::vector<HostTensor> tensors;  // [micro_batch, ...]
  std::int64_t weight = 0;          // how much in it counts
};

class BatchReader {
 public:
  /// `source` must outlive the reader. Needs threads >= 1.
  BatchReader(const SampleSource& source, const BatchOrder& order, int threads);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /// The next pass's batch. Fails as the source does. How long the disk may take is
  /// for the watchdog to judge, by the limit of the phase.
  Result<HostBatch> next();
  /// The same, if it has been read already.
  std::optional<Result<HostBatch>> next_if_ready();

 private:
  Result<HostBatch> take(std::optional<Result<HostBatch>>& slot);
  void run();
  Result<HostBatch> read(std::int64_t number) const;

  const SampleSource& source_;
  const BatchOrder order_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable changed_;
  std::vector<std::optional<Result<HostBatch>>> ring_;  // batch n lies in slot n % size
  std::int64_t next_to_read_ = 0;
  std::int64_t next_to_take_ = 0;
  bool is_stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tj::trainer
