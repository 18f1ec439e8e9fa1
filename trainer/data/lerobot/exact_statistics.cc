#include "trainer/data/lerobot/exact_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tj::trainer {
namespace {

constexpr std::size_t kHalves = 1 << 16;

struct Quantile {
  double share;
  std::vector<double> FeatureStatistics::*values;
};
constexpr Quantile kQuantiles[] = {{0.01, &FeatureStatistics::q01},
                                   {0.10, &FeatureStatistics::q10},
                                   {0.50, &FeatureStatistics::q50},
                                   {0.90, &FeatureStatistics::q90},
                                   {0.99, &FeatureStatistics::q99}};

/// The two values that a quantile lies between, by their number in order, and how far it is from
/// the first.
struct Between {
  std::int64_t low = 0;
  std::int64_t high = 0;
  double share = 0;
};
Between between(double quantile, std::int64_t count) {
  const auto place = quantile * static_cast<double>(count - 1);
  const auto low = std::min(static_cast<std::int64_t>(place), count - 1);
  return {
      .low = low, .high = std::min(low + 1, count - 1), .share = place - static_cast<double>(low)};
}

/// The bucket of the value with this number in order, and the number of values before it.
std::pair<std::uint16_t, std::int64_t> bucket_of(const HalfCounts& counts, std::int64_t number) {
  std::int64_t before = 0;
  for (const auto& [half, count] : counts) {
    if (number < before + count) return {half, before};
    before += count;
  }
  return {counts.rbegin()->first, before - counts.rbegin()->second};
}

double value_at(const FirstPass& first, const SecondPass& second, std::int64_t number) {
  const auto [upper, before] = bucket_of(first.upper, number);
  const auto [lower, unused] = bucket_of(second.lower.at(upper), number - before);
  return from_ordered_bits(static_cast<std::uint32_t>(upper) << 16 | lower);
}

HalfCounts sparse(const std::vector<std::int64_t>& counts) {
  HalfCounts found;
  for (std::size_t half = 0; half < counts.size(); ++half)
    if (counts[half] > 0)
      found.emplace_hint(found.end(), static_cast<std::uint16_t>(half), counts[half]);
  return found;
}

void join_counts(HalfCounts& counts, const HalfCounts& more) {
  for (const auto& [half, count] : more) counts[half] += count;
}

}  // namespace

std::uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value == 0 ? 0.0F : value);  // -0 is 0
  return (bits & 0x8000'0000U) != 0 ? ~bits : bits | 0x8000'0000U;
}

float from_ordered_bits(std::uint32_t bits) {
  return std::bit_cast<float>((bits & 0x8000'0000U) != 0 ? bits & 0x7fff'ffffU : ~bits);
}

FirstPass first_pass_of(std::span<const float> values) {
  FirstPass found{.count = static_cast<std::int64_t>(values.size())};
  std::vector<std::int64_t> counts(kHalves);
  for (const float value : values) {
    const auto bits = ordered_bits(value);
    found.sum += static_cast<double>(value);
    ++counts[bits >> 16];
    found.least = std::min(found.least, bits);
    found.greatest = std::max(found.greatest, bits);
  }
  found.upper = sparse(counts);
  return found;
}

void FirstPass::join(const FirstPass& next) {
  count += next.count;
  sum += next.sum;
  join_counts(upper, next.upper);
  least = std::min(least, next.least);
  greatest = std::max(greatest, next.greatest);
}

void SecondPass::join(const SecondPass& next) {
  squares += next.squares;
  for (const auto& [bucket, counts] : next.lower) join_counts(lower[bucket], counts);
}

SecondSearch::SecondSearch(const FirstPass& first)
    : mean(first.sum / static_cast<double>(first.count)) {
  for (const auto& quantile : kQuantiles) {
    const auto around = between(quantile.share, first.count);
    buckets.push_back(bucket_of(first.upper, around.low).first);
    buckets.push_back(bucket_of(first.upper, around.high).first);
  }
  std::ranges::sort(buckets);
  const auto rest = std::ranges::unique(buckets);
  buckets.erase(rest.begin(), rest.end());
}

SecondPass second_pass_of(std::span<const float> values, const SecondSearch& search) {
  SecondPass found;
  std::vector<std::size_t> slots(kHalves, search.buckets.size());
  std::vector<std::vector<std::int64_t>> counts;
  for (const auto bucket : search.buckets) {
    slots[bucket] = counts.size();
    counts.emplace_back(kHalves);
  }
  for (const float value : values) {
    const auto distance = static_cast<double>(value) - search.mean;
    found.squares += distance * distance;
    const auto bits = ordered_bits(value);
    const auto slot = slots[bits >> 16];
    if (slot < counts.size()) ++counts[slot][bits & 0xffffU];
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (auto lower = sparse(counts[i]); !lower.empty())
      found.lower[search.buckets[i]] = std::move(lower);
  return found;
}

FeatureStatistics exact_statistics(std::span<const FirstPass> first,
                                   std::span<const SecondPass> second) {
  FeatureStatistics statistics{.count = first.empty() ? 0 : first.front().count};
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto count = static_cast<double>(first[i].count);
    statistics.min.push_back(from_ordered_bits(first[i].least));
    statistics.max.push_back(from_ordered_bits(first[i].greatest));
    statistics.mean.push_back(first[i].sum / count);
    statistics.std.push_back(std::sqrt(second[i].squares / count));
    for (const auto& quantile : kQuantiles) {
      const auto around = between(quantile.share, first[i].count);
      const auto low = value_at(first[i], second[i], around.low);
      const auto high = value_at(first[i], second[i], around.high);
      (statistics.*quantile.values).push_back(low + (high - low) * around.share);
    }
  }
  return statistics;
}

}  // namespace tj::trainer
