// When a status is written: what weighs how much, and how long it waits.
#include "operator/loop/status_pace.h"

#include <gtest/gtest.h>

#include "operator/plan/reason.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using Waits = std::vector<std::chrono::milliseconds>;

TEST(StatusChange, is_named_after_the_weightiest_part) {
  JobStatus before;
  before.phase = Phase::running;
  before.reason = reason::kWorkersRunning;
  before.workers = {.desired = 4, .active = 4};
  before.conditions = {{.type = "Running", .status = true}};
  const auto change = [&](auto alter) {
    JobStatus after = before;
    alter(after);
    return change_between(before, after, /*has_consequence=*/false);
  };
  EXPECT_EQ(change([](JobStatus&) {}), StatusChange::none);
  EXPECT_EQ(change([](JobStatus& s) { s.workers.ready = 3; }), StatusChange::counts);
  EXPECT_EQ(change([](JobStatus& s) { s.message = "waiting for 1 of 4"; }), StatusChange::counts);
  EXPECT_EQ(change([](JobStatus& s) { s.troubled_ranks = {{.rank = 1}}; }), StatusChange::counts);
  EXPECT_EQ(change([](JobStatus& s) { s.conditions[0].message = "other words"; }),
            StatusChange::counts);
  EXPECT_EQ(change([](JobStatus& s) { s.workers.active = 1; }), StatusChange::counts);
  EXPECT_EQ(change([](JobStatus& s) { s.workers.active = 0; }), StatusChange::phase)
      << "a queue waits for the quota";
  EXPECT_EQ(change([](JobStatus& s) { s.phase = Phase::failed; }), StatusChange::phase);
  EXPECT_EQ(change([](JobStatus& s) { s.conditions[0].status = false; }), StatusChange::phase);
  EXPECT_EQ(change([](JobStatus& s) { s.restarts = 1; }), StatusChange::phase);
  EXPECT_EQ(change([](JobStatus& s) { s.excluded_nodes = {"n"}; }), StatusChange::phase);
  EXPECT_EQ(change([](JobStatus& s) { s.succeeded_ranks.insert(2); }), StatusChange::success);
  EXPECT_EQ(change([](JobStatus& s) { s.progress = JobProgress{.step = 7}; }),
            StatusChange::progress);
}

TEST(StatusChange, is_a_verdict_where_something_follows_from_it) {
  JobStatus restarting;
  restarting.restarts = 1;
  EXPECT_EQ(change_between({}, restarting, true), StatusChange::verdict);
  JobStatus counted;
  counted.workers.ready = 1;
  EXPECT_EQ(change_between({}, counted, true), StatusChange::counts);
}

TEST(StatusChange, is_no_news_while_the_gang_comes_up) {
  JobStatus creating;
  creating.reason = reason::kCreatingWorkers;
  JobStatus waiting = creating;
  waiting.phase = Phase::starting;
  waiting.reason = reason::kWaitingForWorkers;
  JobStatus restarting;
  restarting.phase = Phase::restarting;
  restarting.reason = reason::kWorkerFailed;
  JobStatus running;
  running.phase = Phase::running;
  running.reason = reason::kWorkersRunning;
  for (const JobStatus& before : {JobStatus{}, creating, restarting}) {
    EXPECT_EQ(change_between(before, waiting, false), StatusChange::coming_up) << before.reason;
    EXPECT_EQ(change_between(before, running, false), StatusChange::phase) << before.reason;
  }
}

TEST(StatusPace, lets_a_verdict_go_at_once) {
  const SteadyTime now{1h};
  std::optional<SteadyTime> creating_since = now;
  StatusPace pace([&] { return creating_since; });
  StatusPace::Job job;
  EXPECT_EQ(pace.wait(job, StatusChange::verdict, now), 0ms);
  EXPECT_GT(pace.wait(job, StatusChange::phase, now), 0ms);
}

TEST(StatusPace, doubles_the_wait_with_each_write_that_only_counts) {
  StatusPace pace([] { return std::nullopt; });
  StatusPace::Job job;
  SteadyTime now{1h};
  EXPECT_EQ(pace.wait(job, StatusChange::counts, now), 0ms) << "the first is not kept waiting";
  Waits waits;
  pace.written(job, StatusChange::phase, now);
  for (int write = 0; write < 6; ++write) {
    waits.push_back(pace.wait(job, StatusChange::counts, now));
    now += waits.back();
    EXPECT_EQ(pace.wait(job, StatusChange::counts, now), 0ms);
    pace.written(job, StatusChange::counts, now);
  }
  EXPECT_EQ(waits, (Waits{4s, 8s, 16s, 32s, 60s, 60s}));
  EXPECT_EQ(pace.wait(job, StatusChange::success, now), 1s) << "its pod may go at any time";
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 100ms), 0ms);
  pace.written(job, StatusChange::phase, now);
  EXPECT_EQ(pace.wait(job, StatusChange::counts, now), 4s);
}

TEST(StatusPace, waits_behind_creations_for_a_while) {
  const SteadyTime now{1h};
  std::optional<SteadyTime> creating_since = now;
  StatusPace pace([&] { return creating_since; });
  StatusPace::Job job;
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now), StatusPace::kLookAgain);
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 9'900ms), 100ms);
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + StatusPace::kBehindCreationsMax), 0ms);
  pace.written(job, StatusChange::phase, now + 10s);
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 11s), StatusPace::kLookAgain);
  creating_since.reset();
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 17s), 0ms);
}

TEST(StatusPace, waits_half_as_long_again_while_what_was_created_comes_up) {
  const SteadyTime now{1h};
  std::optional<SteadyTime> creating_since = now;
  StatusPace pace([&] { return creating_since; });
  StatusPace::Job first;
  StatusPace::Job other;
  EXPECT_GT(pace.wait(first, StatusChange::phase, now), 0ms);
  EXPECT_GT(pace.wait(other, StatusChange::phase, now + 6s), 0ms);
  creating_since.reset();
  EXPECT_GT(pace.wait(other, StatusChange::phase, now + 8'900ms), 0ms);
  EXPECT_EQ(pace.wait(other, StatusChange::phase, now + 9s), 0ms);
}

TEST(StatusPace, counts_each_burst_of_creations_by_itself) {
  const SteadyTime now{1h};
  std::optional<SteadyTime> creating_since = now;
  StatusPace pace([&] { return creating_since; });
  StatusPace::Job job;
  EXPECT_GT(pace.wait(job, StatusChange::phase, now), 0ms);
  pace.written(job, StatusChange::phase, now + 10s);
  creating_since = now + 2h;  // and nobody has asked in between
  EXPECT_GT(pace.wait(job, StatusChange::phase, now + 2h), 0ms);
  creating_since.reset();
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 2h + 1s), 0ms);
}

TEST(StatusPace, tells_a_gang_that_comes_up_fast_in_one_write) {
  StatusPace pace([] { return std::nullopt; });
  StatusPace::Job job;
  const SteadyTime now{1h};
  EXPECT_EQ(pace.wait(job, StatusChange::coming_up, now), StatusPace::kComingUpMax);
  EXPECT_EQ(pace.wait(job, StatusChange::phase, now + 500ms), 0ms);
}

TEST(StatusPace, gives_each_job_a_turn) {
  StatusPace pace([] { return std::nullopt; });
  const SteadyTime now{1h};
  std::vector<StatusPace::Job> jobs(4);
  Waits waits;
  for (auto& job : jobs) waits.push_back(pace.wait(job, StatusChange::phase, now));
  EXPECT_EQ(waits, (Waits{0ms, 100ms, 200ms, 300ms}));
  EXPECT_EQ(pace.wait(jobs[2], StatusChange::phase, now + 150ms), 50ms) << "it keeps its turn";
  EXPECT_EQ(pace.wait(jobs[2], StatusChange::none, now), 0ms);
}

}  // namespace
}  // namespace tj
