#include "trainer/checkpoint/device_to_host.h"

#include <torch/torch.h>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

namespace tj::trainer {
namespace {

constexpr std::int64_t kPieceBytes = 16 << 20;

/// One that is on its way into pinned memory.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  c10::Event arrived;
};

}  // namespace

DeviceToHost::DeviceToHost(c10::Device device)
    : device_(device), stream_(c10::impl::VirtualGuardImpl(device.type()).getNewStream(device)) {
  for (auto& pinned : pinned_)
    pinned = torch::empty({kPieceBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

void DeviceToHost::follow() {
  c10::Event made(device_.type());
  made.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  made.block(stream_);
}

void DeviceToHost::copy(const at::Tensor& source, std::span<std::byte> bytes) {
  const at::NoGradGuard no_gradients;
  const std::scoped_lock lock(mutex_);
  const c10::StreamGuard in_own_stream(stream_);
  const auto from = source.view({-1}).view(at::kByte);
  const auto begin = [&](std::int64_t at) {
    Piece piece{.begin = at,
                .size = std::min(kPieceBytes, from.numel() - at),
                .arrived = c10::Event(device_.type())};
    const auto slot = static_cast<std::size_t>(at / kPieceBytes % 2);
    pinned_[slot].narrow(0, 0, piece.size).copy_(from.narrow(0, at, piece.size), true);
    piece.arrived.record(stream_);
    return piece;
  };
  const auto finish = [&](const Piece& piece) {
    piece.arrived.synchronize();
    const auto slot = static_cast<std::size_t>(piece.begin / kPieceBytes % 2);
    std::memcpy(bytes.data() + piece.begin, pinned_[slot].const_data_ptr(),
                static_cast<std::size_t>(piece.size));
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
