// A sum of squares that does not depend on the order: the same bits however a gradient is shared
// out. Pure.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace tj::trainer {

/// The square of a float is an integer of 48 bits times a power of two that its exponent gives. So
/// there is one exact integer sum for each exponent, and nothing is rounded before the end (after
/// the idea of Kulisch: Computer Arithmetic and Validity, 2008, chapter 8).
class ExactSquares {
 public:
  void add(std::span<const float> values);
  /// The exponents' sums, always added in one order. NaN when a value was not finite.
  double sum() const;

  static constexpr std::size_t kExponents = 256;
  static constexpr std::size_t kWords = 4;  // of 32 bits, the lowest first
  /// The state in words that can be added over up to 2^31 ranks without a carry being lost.
  std::array<std::int64_t, kExponents * kWords> words() const;
  /// From a sum of words().
  static ExactSquares from_words(std::span<const std::int64_t, kExponents * kWords> words);

 private:
  __extension__ using Sum = unsigned __int128;
  std::array<Sum, kExponents> sums_{};
};

}  // namespace tj::trainer
