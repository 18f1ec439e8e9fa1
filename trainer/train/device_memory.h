// What this process's tensors take of its device. Includes torch.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace tj::trainer {

/// Bytes of the tensors alive at one time, at most; none for the CPU, where nobody counts.
std::optional<std::int64_t> peak_tensor_bytes(c10::Device device);

}  // namespace tj::trainer
