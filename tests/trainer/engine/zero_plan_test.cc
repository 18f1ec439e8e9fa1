#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "trainer/train/zero/exact_squares.h"
#include "trainer/train/zero/shard_ranks.h"
#include "trainer/train/zero/zero_schedule.h"
#include "trainer/values/flat_layout.h"
#include "trainer/workloads/gpt2/gpt2_config.h"

namespace tj::trainer {
namespace {

TEST(FlatLayout, every_element_lies_in_one_shard_and_cuts_are_aligned) {
  const std::vector<std::int64_t> sizes{100, 1, 16, 1000, 7};
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const FlatLayout layout(sizes, ranks);
    EXPECT_EQ(layout.shard_size() % kShardAlignment, 0);
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto part = layout.part(tensor, rank);
        if (part.size() == 0) continue;
        EXPECT_EQ(part.begin, next);
        EXPECT_EQ(part.begin % kShardAlignment, 0);
        next = part.end;
      }
      EXPECT_EQ(next, sizes[tensor]) << ranks << " ranks, tensor " << tensor;
    }
  }
}

TEST(FlatLayout, a_rank_may_hold_nothing_of_a_small_group) {
  const std::vector<std::int64_t> sizes{20};
  const FlatLayout layout(sizes, 4);
  EXPECT_EQ(layout.part(0, 0), (ElementRange{0, 16}));
  EXPECT_EQ(layout.part(0, 1), (ElementRange{16, 20}));
  EXPECT_EQ(layout.part(0, 3).size(), 0);
}

TEST(RankInGroups, shards_lie_in_a_row_and_their_holders_one_group_apart) {
  struct Case {
    RankInGroups place;
    std::vector<int> sharers, holders;
  };
  const Case cases[] = {{{0, 4, 4}, {0, 1, 2, 3}, {0}}, {{2, 4, 2}, {2, 3}, {0, 2}},
                        {{3, 4, 2}, {2, 3}, {1, 3}},    {{1, 4, 1}, {1}, {0, 1, 2, 3}},
                        {{4, 6, 3}, {3, 4, 5}, {1, 4}}, {{5, 6, 2}, {4, 5}, {1, 3, 5}},
                        {{0, 1, 1}, {0}, {0}}};
  for (const auto& [place, sharers, holders] : cases) {
    EXPECT_EQ(place.sharers(), sharers) << place.rank << " of " << place.world_size;
    EXPECT_EQ(place.holders(), holders) << place.rank << " of " << place.world_size;
    EXPECT_EQ(place.sharers()[static_cast<std::size_t>(place.shard())], place.rank);
    EXPECT_EQ(place.holders().size(), static_cast<std::size_t>(place.group_count()));
  }
}

struct Example {
  Gpt2Config model{.layers = 2, .heads = 2, .width = 8, .context = 4, .vocabulary = 64};
  std::vector<std::int64_t> sizes;
  std::vector<ModelBlock> blocks = gpt2_blocks(model);
  Example() {
    for (const auto& spec : gpt2_tensors(model))
      sizes.push_back(std::accumulate(spec.shape.begin(), spec.shape.end(), std::int64_t{1},
                                      std::multiplies<>()));
  }
  std::string schedule(const ZeroOptions& options) const {
    const auto units = plan_units(sizes, blocks, options);
    return schedule_text(plan_steps(units, blocks, options));
  }
};

TEST(ZeroSchedule, stages_1_and_2_keep_all_weights_and_reduce_block_by_block) {
  for (const int stage : {1, 2}) {
    EXPECT_EQ(Example().schedule({.stage = stage}),
              "forward 0\n"
              "forward 1\n"
              "forward 2\n"
              "forward 3\n"
              "backward 3 | reduce 3\n"
              "backward 2 | reduce 2\n"
              "backward 1 | reduce 1\n"
              "backward 0 | reduce 0\n");
  }
}

TEST(ZeroSchedule, stage_3_gathers_the_next_block_while_one_computes) {
  // Unit 0: embeddings, 1 and 2: layers, 3: what is small, the last norm too.
  EXPECT_EQ(Example().schedule({.stage = 3, .persist = 80}),
            "forward 0 | gather 0 1 | need 0 | release 0\n"
            "forward 1 | gather 2 | need 1 | release 1\n"
            "forward 2 | gather 0 | need 2 | release 2\n"
            "forward 3 | need 0\n"
            "backward 3 | gather 2 | need 0 | release 0\n"
            "backward 2 | gather 1 | need 2 | release 2 | reduce 2\n"
            "backward 1 | need 1 | release 1 | reduce 1\n"
            "backward 0 | reduce 0 3\n");
}

TEST(ZeroSchedule, without_look_ahead_each_block_waits_for_its_own) {
  EXPECT_EQ(Example().schedule({.stage = 3, .persist = 80, .prefetch = 0}),
            "forward 0 | gather 0 | need 0 | release 0\n"
            "forward 1 | gather 1 | need 1 | release 1\n"
            "forward 2 | gather 2 | need 2 | release 2\n"
            "forward 3 | gather 0 | need 0\n"
            "backward 3 | need 0 | release 0\n"
            "backward 2 | gather 2 | need 2 | release 2 | reduce 2\n"
            "backward 1 | gather 1 | need 1 | release 1 | reduce 1\n"
            "backward 0 | reduce 0 3\n");
}

TEST(ZeroSchedule, a_reuse_distance_keeps_what_is_needed_soon) {
  // The last layer is used again after the head, which reads 512 elements twice.
  const auto text = Example().schedule({.stage = 3, .persist = 80, .reuse = 1088});
  EXPECT_NE(text.find("forward 2 | gather 0 | need 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("forward 1 | gather 2 | need 1 | release 1\n"), std::string::npos) << text;
}

TEST(ZeroSchedule, weights_stay_for_the_next_pass_of_a_step_within_the_reuse_distance) {
  const Example example;
  const auto gathered = [&](const ZeroOptions& options, std::int64_t passes) {
    const auto units = plan_units(example.sizes, example.blocks, options);
    return gathered_elements(units, plan_steps(units, example.blocks, options), passes);
  };
  const ZeroOptions nothing{.stage = 3, .persist = 80};
  ZeroOptions all{.stage = 3, .persist = 80, .reuse = 1'000'000};
  const auto alone = gathered(nothing, 1);
  EXPECT_EQ(gathered(nothing, 8).of_step, 8 * alone.of_step);
  // From forward to backward alone; and all of them, once for the whole step.
  const auto whole = gathered(all, 1).of_step;
  EXPECT_LT(whole, alone.of_step);
  EXPECT_EQ(gathered(all, 8).of_step, 8 * whole);
  all.has_more_passes = true;
  EXPECT_EQ(gathered(all, 8), (GatheredElements{.of_step = whole, .at_once = whole}));
  EXPECT_EQ(example.schedule(all).find("release"), std::string::npos) << example.schedule(all);
  // Without a distance nothing stays.
  EXPECT_EQ(example.schedule({.stage = 3, .persist = 80, .has_more_passes = true}),
            example.schedule(nothing));
}

TEST(ZeroSchedule, nothing_is_gathered_ahead_beyond_the_limit) {
  const auto bounded = Example().schedule({.stage = 3, .persist = 80, .live_max = 0});
  EXPECT_EQ(bounded, Example().schedule({.stage = 3, .persist = 80, .prefetch = 0}));
}

TEST(ZeroSchedule, frozen_tensors_are_in_no_unit) {
  const std::vector<std::int64_t> sizes{0, 40};
  const std::vector<ModelBlock> blocks{{.tensors = {0, 1}}};
  const auto units = plan_units(sizes, blocks, {.stage = 3});
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].tensors, std::vector<std::size_t>{1});
}

TEST(ExactSquares, any_order_and_any_parts_give_the_same_bits) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(10'000);
  for (auto& value : values)
    value = normal(random) * std::ldexp(1.0F, static_cast<int>(random() % 80) - 60);
  ExactSquares whole;
  whole.add(values);
  std::shuffle(values.begin(), values.end(), random);
  ExactSquares first;
  ExactSquares second;
  first.add(std::span(values).first(1234));
  second.add(std::span(values).subspan(1234));
  auto words = first.words();
  const auto more = second.words();
  for (std::size_t index = 0; index < words.size(); ++index) words[index] += more[index];
  EXPECT_EQ(ExactSquares::from_words(words).sum(), whole.sum());
  long double wanted = 0;
  for (const float value : values) wanted += static_cast<long double>(value) * value;
  EXPECT_NEAR(whole.sum() / static_cast<double>(wanted), 1.0, 1e-14);
}

TEST(ExactSquares, the_smallest_the_largest_and_what_is_not_finite) {
  const auto of = [](std::vector<float> values) {
    ExactSquares squares;
    squares.add(values);
    return squares.sum();
  };
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float large = std::numeric_limits<float>::max();
  EXPECT_EQ(of({tiny, -tiny}), 2.0 * tiny * tiny);
  EXPECT_EQ(of({large}), static_cast<double>(large) * large);
  EXPECT_EQ(of({0.0F, -0.0F}), 0.0);
  EXPECT_TRUE(std::isnan(of({1.0F, std::numeric_limits<float>::infinity()})));
}

}  // namespace
}  // namespace tj::trainer
