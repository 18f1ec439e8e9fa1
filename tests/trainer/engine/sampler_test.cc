#include "trainer/train/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "trainer/workloads/gpt2/token_samples.h"

namespace tj::trainer {
namespace {

std::int64_t offset(const TokenTiles& tiles, std::uint64_t seed, std::int64_t number) {
  return tiles.offset(sample_at({.seed = seed, .sample_count = tiles.count()}, number));
}

std::vector<std::int64_t> epoch_of(const TokenTiles& tiles, std::uint64_t seed,
                                   std::int64_t epoch) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t sample = 0; sample < tiles.count(); ++sample)
    offsets.push_back(offset(tiles, seed, epoch * tiles.count() + sample));
  return offsets;
}

TEST(Sampler, counts_samples_with_one_more_token_for_the_last_target) {
  EXPECT_EQ(TokenTiles({.token_count = 64, .sequence_tokens = 64}).count(), 0);
  EXPECT_EQ(TokenTiles({.token_count = 65, .sequence_tokens = 64}).count(), 1);
  EXPECT_EQ(TokenTiles({.token_count = 128, .sequence_tokens = 64}).count(), 1);
  EXPECT_EQ(TokenTiles({.token_count = 129, .sequence_tokens = 64}).count(), 2);
  EXPECT_EQ(TokenTiles({.token_count = 1, .sequence_tokens = 1}).count(), 0);
}

TEST(Sampler, each_epoch_visits_each_tile_exactly_once_and_stays_inside) {
  for (const std::int64_t tokens : {65, 129, 130, 1000, 4097, 65537}) {
    const TokenTiles tiles{.token_count = tokens, .sequence_tokens = 64};
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      auto offsets = epoch_of(tiles, 7, epoch);
      std::ranges::sort(offsets);
      EXPECT_GE(offsets.front(), 0);
      EXPECT_LE(offsets.back() + 64 + 1, tokens);
      for (std::size_t i = 1; i < offsets.size(); ++i) EXPECT_EQ(offsets[i], offsets[i - 1] + 64);
    }
  }
}

TEST(Sampler, epochs_and_seeds_have_orders_of_their_own) {
  const TokenTiles tiles{.token_count = 64 * 500 + 1, .sequence_tokens = 64};
  EXPECT_NE(epoch_of(tiles, 1, 0), epoch_of(tiles, 1, 1));
  EXPECT_NE(epoch_of(tiles, 1, 0), epoch_of(tiles, 2, 0));
  EXPECT_EQ(epoch_of(tiles, 1, 3), epoch_of(tiles, 1, 3));
  EXPECT_FALSE(std::ranges::is_sorted(epoch_of(tiles, 1, 0)));
}

// The order is part of what a checkpoint means: a change here would silently change resumed runs.
TEST(Sampler, the_order_is_frozen) {
  const TokenTiles tiles{.token_count = 10'000, .sequence_tokens = 64};
  std::vector<std::int64_t> offsets;
  for (const std::int64_t sample : {0, 1, 2, 155, 156, 1'000'000})
    offsets.push_back(offset(tiles, 1337, sample));
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{5123, 8579, 2243, 1475, 9221, 8970}));
}

TEST(Sampler, ranks_and_passes_share_a_step_without_gap_or_overlap_whatever_the_world_size) {
  for (const int world_size : {1, 2, 3, 4, 6}) {
    for (const std::int64_t accumulation : {1, 2}) {
      std::vector<std::int64_t> samples;
      const std::int64_t micro_batch = 24 / world_size / accumulation;
      for (std::int64_t pass = 0; pass < accumulation; ++pass) {
        for (int rank = 0; rank < world_size; ++rank) {
          const auto first = first_sample({micro_batch, accumulation, rank}, 240, pass);
          for (std::int64_t row = 0; row < micro_batch; ++row) samples.push_back(first + row);
        }
      }
      ASSERT_EQ(samples.size(), 24U);
      std::ranges::sort(samples);
      for (std::size_t i = 0; i < 24; ++i)
        EXPECT_EQ(samples[i], 240 + static_cast<std::int64_t>(i));
    }
  }
}

}  // namespace
}  // namespace tj::trainer
