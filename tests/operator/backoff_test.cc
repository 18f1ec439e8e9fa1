// How long a restart waits, as a table; the stories plan/backoff* show it in the life of a job.
#include "operator/plan/backoff.h"

#include <gtest/gtest.h>

namespace tj {
namespace {

using namespace std::chrono_literals;

const TimePoint kNow{1'800'000'000'250ms};  // no whole second

FirstFailure failed(FailureCause cause, std::optional<int> exit_code = {}) {
  return {.cause = cause, .exit_code = exit_code, .finished_at = kNow};
}

struct Case {
  const char* name;
  FirstFailure failure;
  int quick_restarts_before;
  std::chrono::seconds backoff;
  std::chrono::seconds wait;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class Backoff : public testing::TestWithParam<Case> {};

TEST_P(Backoff, waits_as_long_as_the_table_says) {
  const Case& wanted = GetParam();
  Observed world{.now = kNow};
  world.job.spec.run.restart_backoff = wanted.backoff;
  JobStatus status{.attempt = 7, .quick_restarts = wanted.quick_restarts_before};
  set_backoff(status, world, wanted.failure);
  EXPECT_EQ(status.quick_restarts, wanted.quick_restarts_before + 1);
  if (wanted.wait == 0s) {
    EXPECT_EQ(status.attempt_start_time, kNow);
    EXPECT_EQ(status.message, "");
  } else {
    EXPECT_EQ(status.attempt_start_time,
              std::chrono::ceil<std::chrono::seconds>(kNow) + wanted.wait);
    const std::string words = "; attempt 7 begins in " + std::to_string(wanted.wait.count()) + " s";
    EXPECT_TRUE(status.message.starts_with(words)) << status.message;
  }
  world.job.status = status;
  EXPECT_EQ(find_backoff(world.job, kNow).has_value(), wanted.wait > 0s);
  EXPECT_FALSE(find_backoff(world.job, kNow + 1s + wanted.wait)) << "it is over";
}

const FirstFailure kCrash = failed(FailureCause::exit_code, 1);

INSTANTIATE_TEST_SUITE_P(
    Plan, Backoff,
    testing::Values(Case{"first", kCrash, 0, 10s, 10s}, Case{"second", kCrash, 1, 10s, 20s},
                    Case{"fifth", kCrash, 4, 10s, 160s}, Case{"sixth", kCrash, 5, 10s, 300s},
                    Case{"hundredth", kCrash, 99, 10s, 300s},
                    Case{"longest_at_first", kCrash, 1, 300s, 300s},
                    Case{"none", kCrash, 9, 0s, 0s},
                    Case{"out_of_memory", failed(FailureCause::oom_killed, 137), 0, 10s, 10s},
                    Case{"hung", failed(FailureCause::hung), 0, 10s, 10s},
                    Case{"rejected", failed(FailureCause::pod_rejected), 0, 10s, 10s},
                    Case{"disrupted", failed(FailureCause::disrupted), 0, 10s, 0s},
                    Case{"disrupted_again", failed(FailureCause::disrupted), 1, 10s, 10s},
                    Case{"node_lost", failed(FailureCause::node_lost), 0, 10s, 0s},
                    Case{"pod_deleted", failed(FailureCause::pod_deleted), 0, 10s, 0s},
                    Case{"killed", failed(FailureCause::signal, 137), 0, 10s, 0s},
                    Case{"crashed", failed(FailureCause::signal, 139), 0, 10s, 10s},
                    Case{"interrupted", failed(FailureCause::exit_code, 75), 0, 10s, 0s},
                    Case{"interrupted_for_the_third_time", failed(FailureCause::exit_code, 75), 2,
                         10s, 20s}),
    [](const auto& test) { return test.param.name; });

JobStatus after_restart(JobStatus before) {
  const Observed world{.now = kNow};
  set_backoff(before, world, kCrash);
  return before;
}

TEST(Backoff, begins_anew_after_an_attempt_that_ran_for_a_minute) {
  const auto status = after_restart({.running_time = kNow - kSteadyRun, .quick_restarts = 3});
  EXPECT_EQ(status.quick_restarts, 0);
  EXPECT_EQ(status.attempt_start_time, kNow);
  EXPECT_EQ(after_restart({.running_time = kNow - 59s, .quick_restarts = 3}).quick_restarts, 4);
}

TEST(Backoff, goes_by_the_end_of_the_worker_not_by_when_it_was_seen) {
  Observed world{.now = kNow + 1h};  // nobody looked for an hour
  JobStatus status{.running_time = kNow - 5s};
  set_backoff(status, world, kCrash);
  EXPECT_EQ(status.quick_restarts, 1);
}

TEST(Backoff, begins_anew_after_an_attempt_that_came_further_than_any_before) {
  const LastCheckpoint saved{.step = 40, .path = "", .time = {}};
  const auto further =
      after_restart({.quick_restarts = 3, .furthest_step = 39, .last_checkpoint = saved});
  EXPECT_EQ(further.quick_restarts, 0);
  EXPECT_EQ(further.furthest_step, 40);
  const auto as_far =
      after_restart({.quick_restarts = 3, .furthest_step = 40, .last_checkpoint = saved});
  EXPECT_EQ(as_far.quick_restarts, 4);
}

TEST(Backoff, does_not_believe_a_time_that_lies_too_far_ahead) {
  TrainingJob job;
  job.status = {.attempt_start_time = kNow + kBackoffMax + 2s, .quick_restarts = 1};
  EXPECT_FALSE(find_backoff(job, kNow)) << "it is of another operator's clock";
  job.status.attempt_start_time = kNow + 5s;
  EXPECT_TRUE(find_backoff(job, kNow));
  job.status.quick_restarts = 0;
  EXPECT_FALSE(find_backoff(job, kNow)) << "nothing has failed";
}

}  // namespace
}  // namespace tj
