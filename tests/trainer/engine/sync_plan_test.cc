#include "trainer/train/sync_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/engine/gpt2_run.h"

namespace tj::trainer {
namespace {

Result<Gpt2Run> run_with(Flags flags, int world_size = 2) {
  flags.insert({{"--data", "/text"}, {"--out", "/out"}});
  return gpt2_run(flags, world_size);
}

TEST(SyncPlan, is_each_step_unless_a_flag_says_otherwise) {
  const auto run = run_with({});
  ASSERT_TRUE(run) << describe(run.error());
  EXPECT_EQ(run->plan.sync.kind, SyncKind::step);
  EXPECT_EQ(run->plan.sync.bucket_bytes, kGradientBucketBytes);
}

TEST(SyncPlan, has_its_own_defaults_for_each_kind) {
  const auto local = run_with({{"--sync", "local"}});
  ASSERT_TRUE(local) << describe(local.error());
  EXPECT_EQ(local->plan.sync.every, 50);
  const auto diloco = run_with({{"--sync", "diloco"}, {"--outer-momentum", "0.8"}});
  ASSERT_TRUE(diloco) << describe(diloco.error());
  EXPECT_EQ(diloco->plan.sync.every, 100);
  EXPECT_EQ(diloco->plan.sync.outer_lr, 0.7);
  EXPECT_EQ(diloco->plan.sync.outer_momentum, 0.8);
}

TEST(SyncPlan, buckets_are_said_or_chosen_later) {
  EXPECT_EQ(run_with({{"--bucket-mib", "4"}})->plan.sync.bucket_bytes, 4 << 20);
  EXPECT_EQ(run_with({{"--bucket-mib", "auto"}})->plan.sync.bucket_bytes, 0);
}

TEST(SyncPlan, what_does_not_go_together_is_refused_with_what_is_right) {
  struct Row {
    Flags flags;
    std::string error;
  };
  const Row rows[] = {
      {{{"--sync", "lazy"}}, "--sync: is \"lazy\"; it must be step, late, local or diloco"},
      {{{"--sync", "late"}, {"--zero", "2"}}, "--sync: is \"late\"; it must be step with --zero 2"},
      {{{"--sync", "local"}, {"--deterministic", "true"}},
       "--sync: is \"local\"; it must be step with --deterministic"},
      {{{"--sync", "diloco"}, {"--precision", "fp16"}},
       "--precision: is \"fp16\"; --sync diloco has no fp16, of whose overflows each step must "
       "hear; --precision bf16 has more range"},
      {{{"--sync", "local"}, {"--ema", "0.9"}},
       "--ema: is \"0.9\"; it must be 0 with --sync local: between two synchronisations each rank "
       "has weights of its own"},
      {{{"--sync", "local"}, {"--eval-data", "/text"}, {"--eval-every", "20"}},
       "--eval-every: is \"20\"; it must be a multiple of --sync-every, 50: only then all ranks "
       "have the same weights"},
      {{{"--sync-every", "5"}}, "--sync-every: is \"5\"; it needs --sync local or diloco"},
      {{{"--sync", "local"}, {"--sync-every", "0"}},
       "--sync-every: is \"0\"; it must be a whole number from 1"},
      {{{"--sync", "local"}, {"--outer-lr", "1"}}, "--outer-lr: is \"1\"; it needs --sync diloco"},
      {{{"--sync", "diloco"}, {"--outer-lr", "0"}},
       "--outer-lr: is \"0\"; it must be a number greater than 0, at most 10"},
      {{{"--bucket-mib", "0"}}, "--bucket-mib: is \"0\"; it must be a whole number from 1 to 1024"},
      {{{"--bucket-mib", "big"}},
       "--bucket-mib: is \"big\"; it must be a whole number from 1 to 1024"},
      {{{"--bucket-mib", "8"}, {"--sync", "late"}},
       "--bucket-mib: is \"8\"; it needs --sync step, which alone has buckets"},
      {{{"--bucket-mib", "8"}, {"--zero", "1"}},
       "--bucket-mib: is \"8\"; it must not be given with --zero, which reduces by blocks"},
  };
  for (const auto& row : rows) {
    const auto run = run_with(row.flags);
    EXPECT_EQ(run ? "" : describe(run.error()), row.error);
  }
}

TEST(SyncPlan, a_single_rank_waits_for_nobody_but_has_an_outer_optimizer) {
  for (const char* const kind : {"late", "local"}) {
    const auto run = run_with({{"--sync", kind}}, 1);
    ASSERT_TRUE(run) << describe(run.error());
    EXPECT_EQ(run->plan.sync.kind, SyncKind::step);
    const auto& rows = run->plan.settings;
    EXPECT_NE(std::ranges::find(rows, "synchronised", &Setting::name), rows.end()) << kind;
  }
  EXPECT_EQ(run_with({{"--sync", "diloco"}}, 1)->plan.sync.kind, SyncKind::diloco);
}

TEST(SyncPlan, a_gpu_keeps_the_usual_buckets) {
  auto run = run_with({{"--bucket-mib", "auto"}});
  ASSERT_TRUE(run);
  run->plan.gpu = 0;
  EXPECT_TRUE(settle_sync(run->plan));
  EXPECT_EQ(run->plan.sync.bucket_bytes, kGradientBucketBytes);
}

TEST(SyncPlan, the_precision_of_a_gpu_is_looked_at_too) {
  auto run = run_with({{"--sync", "late"}});
  ASSERT_TRUE(run);
  run->plan.precision = Precision::fp16;  // a configuration's
  const auto settled = settle_sync(run->plan);
  ASSERT_FALSE(settled);
  EXPECT_EQ(describe(settled.error()),
            "--sync: is \"late\", which has no fp16, of whose overflows each step must hear; "
            "--precision bf16 has more range");
}

}  // namespace
}  // namespace tj::trainer
