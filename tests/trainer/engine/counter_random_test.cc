#include "trainer/values/counter_random.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tj::trainer {
namespace {

// Known answers of Random123 1.14 (kat_vectors, philox 4x32 with 10 rounds).
TEST(CounterRandom, philox_gives_the_published_answers) {
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kAll = 0xffffffff;
  EXPECT_EQ(philox4x32({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<float> mask(const RandomStream& stream, double share, std::size_t count) {
  std::vector<float> values(count);
  fill_keep_mask(stream, share, values);
  return values;
}

TEST(CounterRandom, a_mask_keeps_its_share_and_the_expected_sum) {
  const auto values = mask({.seed = 7, .stream = 2, .sample = 5}, 0.8, 100'001);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  EXPECT_NEAR(sum / 100'001, 1.0, 0.01);
  for (const float value : values) EXPECT_TRUE(value == 0 || value == 1 / 0.8F) << value;
  EXPECT_EQ(mask({}, 1.0, 9), std::vector<float>(9, 1.0F));
}

TEST(CounterRandom, seed_stream_and_sample_each_make_another_mask_and_length_does_not) {
  const RandomStream base{.seed = 7, .stream = 2, .sample = 5};
  const auto values = mask(base, 0.5, 64);
  EXPECT_EQ(values, mask(base, 0.5, 64));
  const auto longer = mask(base, 0.5, 67);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), longer.begin()));
  EXPECT_NE(values, mask({.seed = 8, .stream = 2, .sample = 5}, 0.5, 64));
  EXPECT_NE(values, mask({.seed = 7, .stream = 3, .sample = 5}, 0.5, 64));
  EXPECT_NE(values, mask({.seed = 7, .stream = 2, .sample = 6}, 0.5, 64));
  EXPECT_NE(values, mask({.seed = 7, .stream = 2, .sample = (1LL << 33) + 5}, 0.5, 64));
}

}  // namespace
}  // namespace tj::trainer
