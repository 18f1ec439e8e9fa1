#include "trainer/train/batch_reader.h"

namespace tj::trainer {

BatchReader::BatchReader(const SampleSource& source, const BatchOrder& order, int threads)
    : source_(source), order_(order) {
  TJ_CHECK(threads >= 1 && threads <= kDataThreadsMax, "so many threads");
  ring_.resize(static_cast<std::size_t>(threads * kBatchesAheadPerThread));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

BatchReader::~BatchReader() {
  const std::lock_guard lock(mutex_);
  is_stopping_ = true;
  changed_.notify_all();
}

Result<HostBatch> BatchReader::next() {
  std::unique_lock lock(mutex_);
  auto& slot = ring_[static_cast<std::size_t>(next_to_take_) % ring_.size()];
  changed_.wait(lock, [&] { return slot.has_value(); });
  return take(slot);
}

std::optional<Result<HostBatch>> BatchReader::next_if_ready() {
  const std::scoped_lock lock(mutex_);
  auto& slot = ring_[static_cast<std::size_t>(next_to_take_) % ring_.size()];
  if (!slot) return std::nullopt;
  return take(slot);
}

/// With the lock held.
Result<HostBatch> BatchReader::take(std::optional<Result<HostBatch>>& slot) {
  auto batch = std::move(*slot);
  slot.reset();
  ++next_to_take_;
  changed_.notify_all();
  return batch;
}

void BatchReader::run() {
  const auto ahead_max = static_cast<std::int64_t>(ring_.size());
  std::unique_lock lock(mutex_);
  while (true) {
    // Ends with the reader: a thread that is ahead has nothing else to wait for.
    changed_.wait(lock, [&] { return is_stopping_ || next_to_read_ < next_to_take_ + ahead_max; });
    if (is_stopping_) return;
    const std::int64_t number = next_to_read_++;
    lock.unlock();
    auto batch = read(number);
    lock.lock();
    ring_[static_cast<std::size_t>(number) % ring_.size()] = std::move(batch);
    changed_.notify_all();
  }
}

Result<HostBatch> BatchReader::read(std::int64_t number) const {
  const auto& share = order_.share;
  const std::int64_t step = number / share.passes;
  const std::int64_t first =
      first_sample(share, order_.next_sample + step * order_.batch_size, number % share.passes);
  const SampleOrder order{.seed = order_.seed, .sample_count = source_.sample_count()};
  std::vector<Sample> samples;
  for (std::int64_t row = 0; row < share.micro_batch; ++row)
    samples.push_back(sample_at(order, first + row));
  auto read = source_.read(samples);
  if (!read) return read.error();
  return HostBatch{
      .first_sample = first, .tensors = std::move(read->tensors), .weight = read->weight};
}

}  // namespace tj::trainer
