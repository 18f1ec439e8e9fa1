#include "trainer/launch/failure.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

ProcessEnd ended(int exit_code, bool stopped_by_us = false) {
  return {.env = {.world_size = 4, .rank = 3, .local_rank = 1, .local_world_size = 2, .attempt = 2},
          .pid = 123,
          .exit_code = exit_code,
          .stopped_by_us = stopped_by_us};
}

TEST(Failure, a_wait_status_becomes_a_shells_exit_code) {
  EXPECT_EQ(exit_code_of(3 << 8), 3);
  EXPECT_EQ(exit_code_of(9), 137);
}

TEST(Failure, only_a_lost_peer_gives_way_to_a_later_cause) {
  struct Case {
    ProcessEnd first, later;
    bool later_is_blamed;
  };
  const std::vector<Case> cases = {
      {ended(76), ended(137), true}, {ended(76), ended(1), true},
      {ended(76), ended(76), false}, {ended(76), ended(143, true), false},
      {ended(76), ended(75), false}, {ended(76), ended(0), false},
      {ended(1), ended(137), false}, {ended(139), ended(76), false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(blames_later(c.first, c.later), c.later_is_blamed)
        << c.first.exit_code << " then " << c.later.exit_code;
  }
}

TEST(Failure, the_last_line_names_the_first_failure) {
  EXPECT_EQ(describe_failure(ended(137), ""),
            "rank 3 (local rank 1, pid 123) failed first: killed by signal 9 (SIGKILL); the others "
            "were stopped");
  EXPECT_EQ(describe_failure(ended(78), R"({"reason":"BadConfig","message":"--lr: is \"x\""})"),
            "rank 3 (local rank 1, pid 123) failed first: bad configuration (exit code 78): --lr: "
            "is \"x\"; the others were stopped");
  ProcessEnd alone = ended(1);
  alone.env.local_world_size = 1;
  EXPECT_EQ(describe_failure(alone, "disk full\n"),
            "rank 3 (local rank 1, pid 123) failed: exit code 1: disk full");
}

TEST(Failure, the_childs_own_words_are_kept) {
  const Outcome words{.reason = "BadData", .message = "empty", .rank = 3, .step = 17, .attempt = 2};
  EXPECT_EQ(outcome_of(ended(65), to_termination_message(words)), words);
}

TEST(Failure, without_words_the_launcher_says_what_it_saw) {
  EXPECT_EQ(outcome_of(ended(137), ""),
            (Outcome{.reason = "Killed",
                     .message = "rank 3 (local rank 1, pid 123): killed by signal 9 (SIGKILL)",
                     .rank = 3,
                     .step = {},
                     .attempt = 2}));
  EXPECT_EQ(outcome_of(ended(1), "disk full\n").message,
            "rank 3 (local rank 1, pid 123): exit code 1: disk full");
}

}  // namespace
}  // namespace tj::trainer
