#include "trainer/train/run_length.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/engine/gpt2_run.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kSamples = 12'345;

Result<Gpt2Run> run_with(Flags flags) {
  flags.insert({{"--data", "/text"}, {"--out", "/out"}});
  return gpt2_run(flags, 1);
}

/// The plan of these flags once data of so many samples is open.
TrainPlan settled(const Flags& flags, std::int64_t sample_count = kSamples) {
  auto run = run_with(flags);
  EXPECT_TRUE(run) << describe(run.error());
  const auto done = settle_length(run->plan, sample_count);
  EXPECT_TRUE(done) << describe(done.error());
  return std::move(run->plan);
}

Setting row_of(const TrainPlan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.settings, name, &Setting::name);
  return found == plan.settings.end() ? Setting{} : *found;
}

std::string error_of(const Flags& flags) {
  const auto run = run_with(flags);
  return run ? "" : describe(run.error());
}

TEST(RunLength, epochs_are_steps_rounded_up_so_that_no_sample_is_left_out) {
  struct Row {
    double epochs;
    std::int64_t samples, batch, steps;
  };
  const Row rows[] = {
      {1, 100, 10, 10},
      {1, 101, 10, 11},
      {3, 12'345, 256, 145},
      {5, 100'000, 256, 1954},
      {0.5, 100, 10, 5},
      {0.001, 100, 10, 1},
      {0.1, 30, 3, 1},
      {0.7, 100, 10, 7},
      {1.1, 1000, 10, 110},
      {2.3, 1000, 100, 23},
      {1e6, 1'000'000, 1, 1'000'000'000'000},
      {1, 1, 1'000'000, 1},
      {1.1, 100, 11, 10},
  };
  for (const auto& row : rows) {
    const auto steps = steps_of_epochs(row.epochs, row.samples, row.batch);
    ASSERT_TRUE(steps) << describe(steps.error());
    EXPECT_EQ(*steps, row.steps) << row.epochs << " x " << row.samples << " / " << row.batch;
  }
}

TEST(RunLength, more_steps_than_can_be_counted_are_refused_with_the_numbers) {
  const auto steps = steps_of_epochs(1000, 10'000'000'000, 8);
  ASSERT_FALSE(steps);
  EXPECT_EQ(describe(steps.error()),
            "--epochs: is 1000, and these are more than 1,000,000,000,000 steps of 8 samples: "
            "10,000,000,000 are in --data");
}

TEST(RunLength, the_table_says_of_how_many_samples_and_the_warm_up_follows) {
  const auto plan = settled({{"--epochs", "3"}, {"--batch-size", "256"}});
  EXPECT_EQ(plan.schedule.steps, 145);
  EXPECT_EQ(plan.schedule.warmup_steps, 14);
  EXPECT_EQ(row_of(plan, "steps"),
            (Setting{"steps", "145", "computed: 3 epochs of 12,345 samples / 256"}));
  EXPECT_EQ(row_of(plan, "epochs"), (Setting{"epochs", "3", "flag"}));
  EXPECT_EQ(row_of(plan, "warmup-steps"),
            (Setting{"warmup-steps", "14", "computed: steps / 10, at most 2000"}));
  const auto names = [&](const std::string& name) {
    return std::ranges::count(plan.settings, name, &Setting::name);
  };
  EXPECT_EQ(names("steps"), 1);
  EXPECT_EQ(names("warmup-steps"), 1);
  EXPECT_EQ(row_of(settled({{"--epochs", "1"}}), "steps").origin,
            "computed: 1 epoch of 12,345 samples / 32");
}

TEST(RunLength, a_warm_up_that_is_given_stays_and_a_long_one_has_its_bound) {
  const auto given = settled({{"--epochs", "3"}, {"--warmup-steps", "7"}});
  EXPECT_EQ(given.schedule.warmup_steps, 7);
  EXPECT_EQ(row_of(given, "warmup-steps"), (Setting{"warmup-steps", "7", "flag"}));
  EXPECT_EQ(settled({{"--epochs", "1000"}}).schedule.warmup_steps, 2000);
}

TEST(RunLength, a_run_of_steps_does_not_look_at_the_number_of_samples) {
  const auto plan = settled({{"--steps", "50"}}, 1'000'000);
  EXPECT_EQ(plan.schedule.steps, 50);
  EXPECT_EQ(plan.schedule.warmup_steps, 5);
  EXPECT_EQ(row_of(plan, "steps"), (Setting{"steps", "50", "flag"}));
  EXPECT_EQ(row_of(plan, "epochs"), Setting{});
}

TEST(RunLength, wrong_values_and_both_flags_are_refused) {
  const std::string rule = "it must be a number greater than 0, at most 1000000";
  for (const char* const value : {"0", "-1", "five", "nan", "inf", "1e7", ""})
    EXPECT_EQ(error_of({{"--epochs", value}}),
              "--epochs: is \"" + std::string(value) + "\"; " + rule);
  EXPECT_EQ(error_of({{"--epochs", "3"}, {"--steps", "10"}}),
            "--epochs: is \"3\"; --steps 10 says how long the run is, too; one of the two must go");
}

}  // namespace
}  // namespace tj::trainer
