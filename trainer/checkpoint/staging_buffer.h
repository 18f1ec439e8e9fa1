// Memory for a copy of the training state, of which the kernel has made the pages before it is
// needed: the first touch of 1.5 GB takes seconds, the copy a fraction of one.
#pragma once
#include <cstddef>
#include <span>
#include <thread>

#include "contract/result.h"

namespace tj::trainer {

/// Kept from save to save.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  /// Reserves, and has the pages made on a thread of its own. Best effort.
  void prepare(std::size_t bytes);
  /// What was in it is lost. Fails when there is no such memory.
  Result<std::span<std::byte>> reserve(std::size_t bytes);

 private:
  void release();
  std::span<std::byte> memory_;
  std::jthread preparing_;
};

}  // namespace tj::trainer
