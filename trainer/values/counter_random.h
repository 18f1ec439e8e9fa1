// Random numbers without a state: each is a function of (seed, stream, sample, position), so that
// neither the number of ranks nor a resume changes any. Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
// Parallel random numbers: as easy as 1, 2, 3; SC 2011). Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace tj::trainer {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// Whose numbers: what they are for, and of which sample of the whole training.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::int64_t sample = 0;  // global number, from 0
};

/// values[i] = whether a uniform number of position i is below `share`, as 1 / share or 0: a
/// dropout mask that keeps `share` of the values and the expected sum. Needs 0 < share <= 1.
void fill_keep_mask(const RandomStream& stream, double share, std::span<float> values);

}  // namespace tj::trainer
