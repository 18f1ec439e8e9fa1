#include "trainer/train/zero/exact_squares.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tj::trainer {
namespace {
constexpr int kFractionBits = 23;
constexpr std::uint32_t kFractionMask = (1U << kFractionBits) - 1;
constexpr std::uint32_t kExponentMask = 0xff;
constexpr int kUnitExponent = 150;  // of a float's integer significand: bias 127 + 23 bits
constexpr int kWordBits = 32;
}  // namespace

void ExactSquares::add(std::span<const float> values) {
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = (bits >> kFractionBits) & kExponentMask;
    const std::uint32_t fraction = bits & kFractionMask;
    // Denormals have the unit of exponent 1 and no implicit bit. What is not finite is counted.
    const std::uint64_t significand =
        exponent == 0 ? fraction : (std::uint64_t{fraction} | (1U << kFractionBits));
    sums_[exponent == 0 ? 1 : exponent] += significand * significand;
  }
}

double ExactSquares::sum() const {
  if (sums_[kExponentMask] != 0) return std::numeric_limits<double>::quiet_NaN();
  long double total = 0;  // from the smallest on, always in this order
  for (std::size_t exponent = 1; exponent < kExponentMask; ++exponent) {
    const auto high = static_cast<long double>(static_cast<std::uint64_t>(sums_[exponent] >> 64));
    const auto low = static_cast<long double>(static_cast<std::uint64_t>(sums_[exponent]));
    total +=
        std::ldexp(std::ldexp(high, 64) + low, 2 * (static_cast<int>(exponent) - kUnitExponent));
  }
  return static_cast<double>(total);
}

std::array<std::int64_t, ExactSquares::kExponents * ExactSquares::kWords> ExactSquares::words()
    const {
  std::array<std::int64_t, kExponents * kWords> result{};
  for (std::size_t index = 0; index < result.size(); ++index) {
    const int shift = kWordBits * static_cast<int>(index % kWords);
    result[index] = static_cast<std::uint32_t>(sums_[index / kWords] >> shift);
  }
  return result;
}

ExactSquares ExactSquares::from_words(std::span<const std::int64_t, kExponents * kWords> words) {
  ExactSquares result;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const int shift = kWordBits * static_cast<int>(index % kWords);
    result.sums_[index / kWords] += static_cast<Sum>(words[index]) << shift;
  }
  return result;
}

}  // namespace tj::trainer
