// Random numbers without a state: each is a function of (seed, stream, sample, position), so that
// neither the number of ranks nor a resume changes any. Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
// Parallel random numbers: as easy as 1, 2, 3; SC 2011). Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace tj::trainer {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// splitmix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014).
std::uint64_t mixed(std::uint64_t x);

}  // namespace tj::trainer
