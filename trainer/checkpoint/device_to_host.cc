#include "trainer/checkpoint/device_to_host.h"

#include <torch/types.h>

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "trainer/values/device_stream.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kPieceBytes = 16 << 20;

/// Bytes on their way into pinned memory.
struct Piece {
  at::Tensor pinned;
  std::int64_t begin = 0;
  c10::Event arrived;
};

}  // namespace

DeviceToHost::DeviceToHost(c10::Device device) : device_(device), stream_(side_stream(device)) {
  for (auto& pinned : pinned_)
    pinned = torch::empty({kPieceBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

void DeviceToHost::follow() { event_in(current_stream(device_)).block(stream_); }

void DeviceToHost::copy(const at::Tensor& source, std::span<std::byte> bytes) {
  const at::NoGradGuard no_gradients;
  const std::scoped_lock lock(mutex_);
  const c10::StreamGuard in_own_stream(stream_);
  const auto from = source.view({-1}).view(at::kByte);
  const auto begin = [&](std::int64_t at) {
    const auto size = std::min(kPieceBytes, from.numel() - at);
    const auto slot = static_cast<std::size_t>(at / kPieceBytes) % pinned_.size();
    const auto pinned = pinned_[slot].narrow(0, 0, size);
    pinned.copy_(from.narrow(0, at, size), /*non_blocking=*/true);
    return Piece{.pinned = pinned, .begin = at, .arrived = event_in(stream_)};
  };
  const auto finish = [&](const Piece& piece) {
    piece.arrived.synchronize();
    std::memcpy(bytes.data() + piece.begin, piece.pinned.const_data_ptr(), piece.pinned.nbytes());
  };
  std::optional<Piece> under_way;
  for (std::int64_t at = 0; at < from.numel(); at += kPieceBytes) {
    auto next = begin(at);
    if (under_way) finish(*under_way);
    under_way.emplace(std::move(next));
  }
  if (under_way) finish(*under_way);
}

}  // namespace tj::trainer
