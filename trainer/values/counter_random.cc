#include "trainer/values/counter_random.h"

#include <cmath>

namespace tj::trainer {
namespace {

constexpr int kRounds = 10;
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr double kTwoTo32 = 4294967296.0;

std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

void fill_keep_mask(const RandomStream& stream, double share, std::span<float> values) {
  const auto limit = static_cast<std::uint64_t>(std::llround(share * kTwoTo32));
  const auto kept = static_cast<float>(1.0 / share);
  const auto sample = static_cast<std::uint64_t>(stream.sample);
  for (std::size_t first = 0; first < values.size(); first += 4) {
    const auto four = philox4x32({low(first / 4), stream.stream, low(sample), high(sample)},
                                 {low(stream.seed), high(stream.seed)});
    for (std::size_t i = 0; i < 4 && first + i < values.size(); ++i)
      values[first + i] = four[i] < limit ? kept : 0.0F;
  }
}

}  // namespace tj::trainer
