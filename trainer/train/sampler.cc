#include "trainer/train/sampler.h"

#include <algorithm>
#include <bit>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr int kFeistelRounds = 6;

/// A permutation of [0, 4^k) that covers [0, count): a balanced Feistel network.
std::uint64_t feistel(std::uint64_t value, std::uint64_t key, unsigned half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kFeistelRounds; ++round) {
    const std::uint64_t next = left ^ (mixed(key ^ mixed(right ^ (round << 56))) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

/// A permutation of [0, count): values outside walk on along their cycle until they are inside,
/// fewer than 4 tries on average since 4^k < 4 * count.
std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t key) {
  const auto limit = static_cast<std::uint64_t>(count);
  const auto bits = static_cast<unsigned>(std::bit_width(limit - 1));
  const unsigned half_bits = std::max(1U, (bits + 1) / 2);
  auto value = static_cast<std::uint64_t>(index);
  do value = feistel(value, key, half_bits);
  while (value >= limit);
  return static_cast<std::int64_t>(value);
}

}  // namespace

Sample sample_at(const SampleOrder& order, std::int64_t number) {
  const auto epoch = static_cast<std::uint64_t>(number / order.sample_count);
  const std::uint64_t key = mixed(mixed(order.seed) ^ epoch);
  return {.index = permuted(number % order.sample_count, order.sample_count, key),
          .epoch_key = key};
}

std::int64_t first_sample(const BatchShare& share, std::int64_t step_first_sample,
                          std::int64_t pass) {
  return step_first_sample + (share.rank * share.passes + pass) * share.micro_batch;
}

}  // namespace tj::trainer
