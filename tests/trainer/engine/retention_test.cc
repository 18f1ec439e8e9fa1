#include "trainer/checkpoint/retention.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/folder.h"

namespace tj::trainer {
namespace {

struct Story {
  std::vector<std::int64_t> there;  // steps of the checkpoints in the folder
  RetentionPolicy policy;
  std::vector<std::int64_t> own;  // as the run began from or wrote them
  std::vector<std::string> left;  // newest first
};

void expect_left(const Story& story) {
  const TemporaryFolder out;
  for (const auto step : story.there) out.write(checkpoint_name(step) + "/manifest.json", "{}");
  OwnCheckpoints own(story.policy.keep);
  for (const auto step : story.own) own.add(step);
  prune_checkpoints(out.path(), story.policy, own.names());
  EXPECT_EQ(checkpoint_names(out.path()), story.left);
  const std::filesystem::directory_iterator entries(out.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), std::ssize(story.left));
}

TEST(Retention, the_newest_stay) {
  expect_left({.there = {10, 20, 30},
               .policy = {.keep = 0},
               .own = {10, 20, 30},
               .left = {"step-000030", "step-000020", "step-000010"}});
  expect_left({.there = {10, 20, 30},
               .policy = {.keep = 2},
               .own = {10, 20, 30},
               .left = {"step-000030", "step-000020"}});
}

TEST(Retention, multiples_of_a_step_stay_for_ever) {
  expect_left({.there = {10, 20, 30, 40, 50, 60},
               .policy = {.keep = 1, .keep_every = 20},
               .own = {50, 60},
               .left = {"step-000060", "step-000040", "step-000020"}});
}

TEST(Retention, what_an_earlier_attempt_left_counts_where_it_is_older) {
  expect_left({.there = {10, 20, 30, 40},
               .policy = {.keep = 3},
               .own = {30, 40},
               .left = {"step-000040", "step-000030", "step-000020"}});
}

TEST(Retention, what_was_just_saved_outlives_newer_ones_that_nobody_verified) {
  expect_left({.there = {10, 14, 20},
               .policy = {.keep = 1},
               .own = {10, 14},
               .left = {"step-000020", "step-000014"}});
  expect_left({.there = {10, 14, 20, 24},
               .policy = {.keep = 2},
               .own = {10, 14, 24},
               .left = {"step-000024", "step-000020", "step-000014"}});
}

TEST(Retention, before_anything_is_saved_nothing_goes) {
  expect_left({.there = {10, 20},
               .policy = {.keep = 1},
               .own = {},
               .left = {"step-000020", "step-000010"}});
}

}  // namespace
}  // namespace tj::trainer
