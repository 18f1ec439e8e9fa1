#include "trainer/train/device_memory.h"

#include <torch/types.h>

#include <c10/core/CachingDeviceAllocator.h>

namespace tj::trainer {

std::optional<std::int64_t> peak_tensor_bytes(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .peak;
}

}  // namespace tj::trainer
