// Statistics that are exact and the same on any number of threads: counts in whole numbers, sums in
// the order of parts, quantiles by what really stands there and not by a histogram of ranges. In
// two passes over the values; each part of a pass can be noted and joined later. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "trainer/data/lerobot/statistics.h"

namespace tj::trainer {

/// A float32 as a number that is ordered as it: so a histogram of its upper half, and one of the
/// lower half of those within a bucket, find every value.
std::uint32_t ordered_bits(float value);
float from_ordered_bits(std::uint32_t bits);

/// How many values have the upper, or the lower, 16 bits.
using HalfCounts = std::map<std::uint16_t, std::int64_t>;

/// What the first pass finds of one dimension. No value is NaN.
struct FirstPass {
  std::int64_t count = 0;
  double sum = 0;
  HalfCounts upper;  // its first and last bucket hold the least and the greatest value
  std::uint32_t least = UINT32_MAX;  // by ordered_bits()
  std::uint32_t greatest = 0;
  bool operator==(const FirstPass&) const = default;
  /// Of the part that follows.
  void join(const FirstPass& next);
};
FirstPass first_pass_of(std::span<const float> values);

/// What the second pass finds, which knows the first of all parts.
struct SecondPass {
  double squares = 0;                         // of the distances from the mean
  std::map<std::uint16_t, HalfCounts> lower;  // of the buckets that hold a quantile
  bool operator==(const SecondPass&) const = default;
  void join(const SecondPass& next);
};

/// What the second pass looks for: of one dimension, once `first` is of all parts.
struct SecondSearch {
  double mean = 0;
  std::vector<std::uint16_t> buckets;  // ascending
  explicit SecondSearch(const FirstPass& first);
};
SecondPass second_pass_of(std::span<const float> values, const SecondSearch& search);

/// Of each dimension. Quantiles as numpy.quantile() finds them: linear between the two values
/// around q (count - 1).
FeatureStatistics exact_statistics(std::span<const FirstPass> first,
                                   std::span<const SecondPass> second);

}  // namespace tj::trainer
