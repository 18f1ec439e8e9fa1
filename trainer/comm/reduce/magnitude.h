// The largest magnitude of a block, by the bits of its values: as whole numbers they are in the
// same order, their maximum needs no order of its own, and what is not finite is above all that is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tj::trainer {

inline constexpr std::int32_t kInfinityBits = 0x7f80'0000;

/// At least kInfinityBits where any value is not finite.
std::int32_t largest_magnitude_bits(std::span<const float> values);

}  // namespace tj::trainer
