#include "trainer/checkpoint/staging_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace tj::trainer {
namespace {
/// Whoever wants memory for training waits for one such piece, as the kernel's lock is the same.
/// Hence the thread doesn't step back either: it would hold that lock and not run.
constexpr std::size_t kPieceBytes = 2 << 20;
}  // namespace

StagingBuffer::~StagingBuffer() { release(); }

void StagingBuffer::release() {
  preparing_ = {};  // stops and joins
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  memory_ = {};
}

void StagingBuffer::prepare(std::size_t bytes) {
  const auto reserved = reserve(bytes);
  if (!reserved || bytes == 0) return;  // the save says so
  preparing_ = std::jthread([memory = *reserved](const std::stop_token& stop) {
    for (std::size_t begin = 0; begin < memory.size() && !stop.stop_requested();
         begin += kPieceBytes) {
      const auto piece = memory.subspan(begin, std::min(kPieceBytes, memory.size() - begin));
      // Keeps what a copy has already put there. Kernels before 5.14 refuse.
      if (::madvise(piece.data(), piece.size(), MADV_POPULATE_WRITE) != 0) return;
    }
  });
}

Result<std::span<std::byte>> StagingBuffer::reserve(std::size_t bytes) {
  if (memory_.size() >= bytes) return memory_.first(bytes);
  release();
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{.code = Code::unavailable,
                 .message = "no memory for a copy of the state, " + std::to_string(bytes) +
                            " bytes: " + std::strerror(errno),
                 .subject = {}};
  }
  memory_ = {static_cast<std::byte*>(memory), bytes};
  return memory_;
}

}  // namespace tj::trainer
