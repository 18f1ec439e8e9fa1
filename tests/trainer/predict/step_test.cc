// What hides behind backward, and what doesn't.
#include "trainer/predict/step.h"

#include <gtest/gtest.h>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

/// A backward of 2 s over four gradients of 25 MiB, each complete after another quarter.
StepInputs four_quarters() {
  std::vector<Gradient> gradients;
  for (const double ready : {0.25, 0.5, 0.75, 1.0})
    gradients.push_back({.shape = {25 * kMebi / 4}, .ready = ready});
  return {.ranks = 2,
          .passes = 4,
          .compute = {.forward_s = 1, .backward_s = 2, .update_s = 0.5},
          .link = {.bytes_per_second = 50.0 * kMebi},  // half a second for each
          .gradients = gradients};
}

TEST(Step, the_last_bucket_can_not_hide) {
  const auto step = predict_step(four_quarters());
  EXPECT_DOUBLE_EQ(step.wire_s, 2);
  EXPECT_DOUBLE_EQ(step.exposed_s, 0.5);
  EXPECT_DOUBLE_EQ(step.compute_s, 4 * 3 + 0.5);
  EXPECT_DOUBLE_EQ(step.step_s(), 13);
  EXPECT_DOUBLE_EQ(step.sent_bytes, 100.0 * kMebi);
}

TEST(Step, a_wire_that_is_slower_than_backward_is_exposed_from_its_first_bucket_on) {
  auto inputs = four_quarters();
  inputs.link.bytes_per_second /= 2;  // a second for each, from 0.5 s of backward on
  EXPECT_DOUBLE_EQ(predict_step(inputs).exposed_s, 0.5 + 4 - 2);
}

TEST(Step, only_the_last_pass_hides_anything) {
  auto inputs = four_quarters();
  const double once = predict_step(inputs).exposed_s;
  inputs.passes = 32;
  EXPECT_DOUBLE_EQ(predict_step(inputs).exposed_s, once);
}

TEST(Step, a_core_that_serves_the_wire_computes_more_slowly_meanwhile) {
  auto inputs = four_quarters();
  inputs.link.core_s_per_byte = 0.2 / inputs.link.bytes_per_second;
  const auto step = predict_step(inputs);
  // Of 0.5 s to 2.3 s the wire is busy for 1.5 s, and computing loses a fifth of them.
  EXPECT_NEAR(step.slowed_s, 0.3, 1e-9);
  EXPECT_NEAR(step.exposed_s, 0.5, 1e-9);
  EXPECT_NEAR(step.step_s(), 13.3, 1e-9);
}

TEST(Step, who_only_waits_for_the_wire_is_not_slowed_by_it) {
  auto inputs = four_quarters();
  inputs.link.core_s_per_byte = 0.2 / inputs.link.bytes_per_second;
  inputs.reduction.overlaps = false;
  EXPECT_DOUBLE_EQ(predict_step(inputs).slowed_s, 0);
  EXPECT_DOUBLE_EQ(predict_step(inputs).exposed_s, 2);
}

TEST(Step, without_overlap_all_of_it_is_exposed) {
  auto inputs = four_quarters();
  inputs.reduction.overlaps = false;
  EXPECT_DOUBLE_EQ(predict_step(inputs).exposed_s, 2);
}

TEST(Step, a_codec_costs_its_time_and_saves_that_of_the_wire) {
  auto inputs = four_quarters();
  inputs.reduction.codec = Codec::bf16;
  inputs.reduction.codec_bytes_per_second = 400.0 * kMebi;
  const auto step = predict_step(inputs);
  EXPECT_DOUBLE_EQ(step.wire_s, 1);
  EXPECT_DOUBLE_EQ(step.codec_s, 0.25);
  EXPECT_DOUBLE_EQ(step.exposed_s, 0.25);
}

TEST(Step, one_rank_waits_for_nobody) {
  auto inputs = four_quarters();
  inputs.ranks = 1;
  const auto step = predict_step(inputs);
  EXPECT_EQ(step.wire_s, 0);
  EXPECT_EQ(step.efficiency(), 1);
}

TEST(Step, a_bucket_is_closed_by_the_gradient_that_fills_it) {
  // 0.5 and 0.6 MiB fill the first bucket of one; then 20 MiB wait for the 100 behind them.
  std::vector<Gradient> gradients;
  for (const double mebi : {0.5, 0.6, 20.0, 100.0, 3.0})
    gradients.push_back(
        {.shape = {static_cast<std::int64_t>(mebi * kMebi / 4)}, .ready = mebi / 100});
  const auto buckets = buckets_of(gradients, {});
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_NEAR(buckets[0].payload_bytes, 1.1 * kMebi, 8);
  EXPECT_NEAR(buckets[1].payload_bytes, 120.0 * kMebi, 8);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 1);
  EXPECT_NEAR(buckets[2].payload_bytes, 3.0 * kMebi, 8);
}

TEST(Step, a_tied_embedding_is_complete_last) {
  const auto gradients = gpt2_tiny();
  EXPECT_EQ(element_count(gradients), 51'213'824);
  EXPECT_EQ(gradients.front().shape, (std::vector<std::int64_t>{512}));  // of the last norm
  EXPECT_LT(gradients.front().ready, 0.6);  // the head is half of the work
  EXPECT_GT(gradients.front().ready, 0.4);
  EXPECT_EQ(gradients.back().shape, (std::vector<std::int64_t>{50257, 512}));
  EXPECT_DOUBLE_EQ(gradients.back().ready, 1);
}

TEST(Step, frozen_tensors_are_not_sent) {
  const std::vector<PlannedTensor> tensors{{{8, 8}}, {{100, 100}, /*is_trained=*/false}};
  const std::vector<PlannedBlock> blocks{{0, 1}};
  EXPECT_EQ(element_count(gradients_by_blocks(tensors, blocks)), 64);
}

TEST(Step, zero_moves_what_its_laws_say) {
  auto inputs = four_quarters();
  const double parameters = 100.0 * kMebi;  // bytes of all
  const auto moved = [&](int stage) {
    inputs.zero_stage = stage;
    return predict_step(inputs).sent_bytes * 2 / parameters;  // N / (N - 1)
  };
  EXPECT_DOUBLE_EQ(moved(0), 2);
  EXPECT_DOUBLE_EQ(moved(1), 2);
  EXPECT_DOUBLE_EQ(moved(2), 1 + 4);
  EXPECT_DOUBLE_EQ(moved(3), 3 * 4);
  inputs.gathered_share = 1.0 / 8;  // once in the step
  EXPECT_DOUBLE_EQ(moved(3), 4 + 1);
  EXPECT_DOUBLE_EQ(moved(2), 1 + 4);
}

TEST(Step, frozen_weights_that_are_shared_out_are_gathered_in_each_pass) {
  for (int stage = 0; stage <= 3; ++stage) {
    auto inputs = four_quarters();
    inputs.zero_stage = stage;
    const auto whole = predict_step(inputs);
    inputs.frozen_bytes = 10.0 * kMebi;
    const auto shared = predict_step(inputs);
    const auto passes = static_cast<double>(inputs.passes);
    const double of_ring = (inputs.ranks - 1.0) / inputs.ranks;
    EXPECT_DOUBLE_EQ(shared.frozen_bytes, passes * of_ring * inputs.frozen_bytes) << stage;
    EXPECT_DOUBLE_EQ(shared.sent_bytes, whole.sent_bytes + shared.frozen_bytes) << stage;
    const double seconds = shared.wire_s - whole.wire_s;
    EXPECT_GT(seconds, 0) << stage;
    EXPECT_LE(shared.exposed_s, whole.exposed_s + seconds + 1e-12) << stage;
    inputs.compute.forward_s = 0;  // behind which nothing hides
    EXPECT_GT(predict_step(inputs).exposed_s, whole.exposed_s) << stage;
  }
}

TEST(Step, groups_of_zero_sum_their_shards_once_in_a_step) {
  auto inputs = four_quarters();
  inputs.ranks = 8;
  inputs.zero_stage = 3;
  const auto all = predict_step(inputs);
  inputs.ranks = 2;
  const auto alone = predict_step(inputs);
  inputs.ranks = 8;
  inputs.zero_group = 2;
  const auto grouped = predict_step(inputs);
  // Half of the gradients around a ring of four groups.
  const double across = 2 * 3.0 / 4 * (100.0 * kMebi / 2);
  EXPECT_DOUBLE_EQ(grouped.sent_bytes, alone.sent_bytes + across);
  EXPECT_LT(grouped.sent_bytes, all.sent_bytes);
  EXPECT_GT(grouped.wire_s, alone.wire_s);
  EXPECT_LE(grouped.exposed_s, all.exposed_s);
}

}  // namespace
}  // namespace tj::trainer
