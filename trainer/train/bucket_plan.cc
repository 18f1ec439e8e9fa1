#include "trainer/train/bucket_plan.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "trainer/comm/reduce_options.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr std::int64_t kBucketMibMax = 256;
constexpr double kAsGood = 0.01;  // of the whole reduction

double sum_of(std::span<const std::int64_t> tensor_bytes) {
  return static_cast<double>(
      std::accumulate(tensor_bytes.begin(), tensor_bytes.end(), std::int64_t{0}));
}

}  // namespace

double exposed_seconds(const ReduceProfile& profile, std::span<const std::int64_t> tensor_bytes,
                       std::int64_t bucket_bytes) {
  const double all = std::max(1.0, sum_of(tensor_bytes));
  double made = 0, in_bucket = 0, wire_free_at = 0;
  double limit = static_cast<double>(kFirstBucketBytes);
  for (std::size_t index = 0; index < tensor_bytes.size(); ++index) {
    const auto bytes = static_cast<double>(tensor_bytes[index]);
    made += bytes;
    in_bucket += bytes;
    const bool is_last = index + 1 == tensor_bytes.size();
    if (in_bucket < limit && !is_last) continue;
    const double ready_at = profile.backward_seconds * made / all;
    wire_free_at = std::max(wire_free_at, ready_at) + profile.latency_seconds +
                   in_bucket * profile.seconds_per_byte;
    in_bucket = 0;
    limit = static_cast<double>(bucket_bytes);
  }
  return std::max(0.0, wire_free_at - profile.backward_seconds);
}

std::int64_t best_bucket_bytes(const ReduceProfile& profile,
                               std::span<const std::int64_t> tensor_bytes) {
  const double whole = profile.latency_seconds + sum_of(tensor_bytes) * profile.seconds_per_byte;
  std::vector<std::int64_t> sizes;
  std::vector<double> exposed;
  for (std::int64_t mib = 1; mib <= kBucketMibMax; mib *= 2) {
    sizes.push_back(mib * kMib);
    exposed.push_back(exposed_seconds(profile, tensor_bytes, sizes.back()));
  }
  const double least = *std::ranges::min_element(exposed);
  std::size_t best = sizes.size() - 1;
  while (exposed[best] > least + kAsGood * whole) --best;
  return sizes[best];
}

std::string bucket_line(const ReduceProfile& profile, std::span<const std::int64_t> tensor_bytes,
                        std::int64_t bucket_bytes) {
  constexpr double kMilliseconds = 1e3, kMegabyte = 1e6;
  const double speed =
      profile.seconds_per_byte > 0 ? 1 / (profile.seconds_per_byte * kMegabyte) : 0;
  char text[192];
  std::snprintf(
      text, sizeof text,
      "buckets of %lld MiB: %.0f ms of each step's reduction can't be hidden (%.2f ms and "
      "%.1f MB/s on the wire, backward %.0f ms)",
      static_cast<long long>(bucket_bytes / kMib),
      exposed_seconds(profile, tensor_bytes, bucket_bytes) * kMilliseconds,
      profile.latency_seconds * kMilliseconds, speed, profile.backward_seconds * kMilliseconds);
  return text;
}

}  // namespace tj::trainer
