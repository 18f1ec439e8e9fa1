// The recommended setting: the least risk that reaches the target.
#include "trainer/predict/advice.h"

#include <gtest/gtest.h>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

/// System S2: a second of computing for `passes` passes, over one gigabit.
StepInputs s2(std::int64_t passes, double rate = kGigabit) {
  const double pass_s = 1.0 / static_cast<double>(passes);
  return {.ranks = 2,
          .passes = passes,
          .compute = {.forward_s = pass_s / 3, .backward_s = pass_s * 2 / 3},
          .link = {.bytes_per_second = rate},
          .gradients = gpt2_tiny()};
}

std::string advised(const StepInputs& inputs, double target) {
  const auto table = table_of(inputs, {});
  const auto advice = advise(table, {.passes = inputs.passes}, target);
  std::string text;
  if (advice.setting)
    text = std::string(to_string(advice.setting->codec)) + " x " +
           std::to_string(advice.setting->passes);
  if (advice.by_consent)
    text += " or " + std::string(to_string(advice.by_consent->codec)) + " x " +
            std::to_string(advice.by_consent->passes);
  return text;
}

TEST(Advice, has_all_codecs_and_passes_and_the_runs_own) {
  EXPECT_EQ(table_of(s2(8), {}).size(), 6 * 5U);
  EXPECT_EQ(table_of(s2(6), {}).size(), 7 * 5U);
  auto sharded = s2(8);
  sharded.zero_stage = 2;
  EXPECT_EQ(table_of(sharded, {}).size(), 6U);
}

TEST(Advice, a_fast_link_needs_nothing) { EXPECT_EQ(advised(s2(8, 10e9), 0.9), "fp32 x 8"); }

TEST(Advice, takes_the_least_risk_at_the_runs_own_passes_first) {
  EXPECT_EQ(advised(s2(8, 2 * kGigabit), 0.7), "bf16 x 8");
  EXPECT_EQ(advised(s2(8, 4 * kGigabit), 0.9), "int8 x 8");
}

TEST(Advice, then_more_passes_and_names_what_needs_consent) {
  EXPECT_EQ(advised(s2(8), 0.9), "int8 x 32 or powersgd x 8");
}

TEST(Advice, names_only_what_reaches_the_target) {
  EXPECT_EQ(advised(s2(32), 0.9), " or powersgd x 32");
  EXPECT_EQ(advised(s2(32, kGigabit / 100), 0.9), "");
}

TEST(Advice, by_the_share_of_a_bare_step) {
  EXPECT_EQ(codec_by_share(0.05), Codec::fp32);
  EXPECT_EQ(codec_by_share(0.46), Codec::bf16);
  EXPECT_EQ(codec_by_share(0.63), Codec::int8);
  EXPECT_EQ(codec_by_share(0.9), Codec::powersgd);
}

}  // namespace
}  // namespace tj::trainer
