// Rules about failures that no story reaches: counts that take months, pods that ended oddly.
#include "operator/plan/failure.h"

#include <gtest/gtest.h>

#include "contract/outcome.h"

namespace tj {
namespace {

const TimePoint kNow{std::chrono::seconds{1'800'000'000}};

/// A job that runs with one worker for each of `pods`.
Observed running(std::vector<Pod> pods) {
  Observed world;
  world.job.meta = {.name = "j", .ns = "default", .uid = "uid", .generation = 1};
  world.job.spec.worker_count = static_cast<int>(pods.size());
  world.job.status.phase = Phase::running;
  world.job.status.world_size = world.job.spec.worker_count;
  world.job.status.start_time = kNow;
  for (std::size_t rank = 0; rank < pods.size(); ++rank) {
    Pod& pod = pods[rank];
    pod.meta.name = names::worker_pod("j", static_cast<int>(rank));
    pod.meta.controller_uid = "uid";
    pod.job_name = "j";
    pod.worker_index = static_cast<int>(rank);
    pod.attempt = world.job.status.attempt;
  }
  world.pods = std::move(pods);
  world.now = kNow;
  return world;
}

Pod ended(int exit_code, PodPhase phase) {
  return {.phase = phase,
          .exit = ContainerExit{
              .exit_code = exit_code, .reason = "", .message = "", .finished_at = kNow}};
}

JobStatus judge(const Observed& world) {
  const Gang gang = gang_of(world);
  return judge_failure(world, gang, find_first_failure(world, gang).value());
}

Pod evicted() { return {.phase = PodPhase::failed, .reason = "Evicted"}; }

TEST(Restarts, that_counted_before_the_budget_was_earned_back_are_no_uncounted_ones) {
  Observed world = running({evicted()});
  world.job.status.restarts = 1'500;  // of which all have counted, and were earned back
  const JobStatus status = judge(world);
  EXPECT_EQ(status.phase, Phase::restarting) << status.message;
  EXPECT_EQ(status.restarts, 1'501);
  EXPECT_EQ(status.restarts_uncounted, 1);
  EXPECT_EQ(status.restarts_counted, 0);
}

TEST(Restarts, that_do_not_count_have_a_bound_of_their_own) {
  Observed world = running({evicted()});
  world.job.status.restarts = 1'001;
  world.job.status.restarts_counted = 1;
  world.job.status.restarts_uncounted = kUncountedRestartsMax;
  const JobStatus status = judge(world);
  EXPECT_EQ(status.phase, Phase::failed);
  EXPECT_EQ(status.reason, "RestartsExhausted");
  EXPECT_NE(status.message.find("restarted 1000 times already"), std::string::npos)
      << status.message;
}

TEST(FirstFailure, a_sidecar_that_fails_beside_a_worker_that_ended_with_0_is_none) {
  const Observed world = running({ended(0, PodPhase::failed), ended(0, PodPhase::succeeded)});
  EXPECT_FALSE(find_first_failure(world, gang_of(world)));
  EXPECT_TRUE(has_reached_its_end(world.job, gang_of(world)));
}

TEST(FirstFailure, a_worker_that_ended_with_0_because_its_pod_was_stopped_is_one) {
  Pod pod = ended(0, PodPhase::failed);
  pod.reason = "Evicted";
  EXPECT_EQ(judge(running({pod})).first_failure->cause, FailureCause::disrupted);
  pod.reason.clear();
  pod.conditions = {{"DisruptionTarget", "PreemptionByScheduler", ""}};
  EXPECT_EQ(judge(running({pod})).first_failure->cause, FailureCause::disrupted);
}

/// Of two workers the second one, which was drained and ended with this code, is deleted already.
Observed running_without_the_drained(int exit_code) {
  Pod drained = ended(exit_code, PodPhase::failed);
  drained.node = "n1";
  drained.conditions = {{"DisruptionTarget", "EvictionByEvictionAPI", "evicted"}};
  Observed world = running({Pod{.phase = PodPhase::running}, drained});
  world.departed = {world.pods.back()};
  world.pods.pop_back();
  return world;
}

TEST(FirstFailure, a_worker_that_is_deleted_by_the_time_it_is_looked_at_is_told_by_its_end) {
  const JobStatus status = judge(running_without_the_drained(143));
  EXPECT_EQ(status.first_failure->cause, FailureCause::disrupted);
  EXPECT_EQ(status.first_failure->rank, 1);
  EXPECT_EQ(status.first_failure->node, "n1");
  EXPECT_EQ(status.first_failure->reason, "EvictionByEvictionAPI");
  const Observed world = running_without_the_drained(exit_code::kBadConfig);
  EXPECT_EQ(judge(world).phase, Phase::failed) << "what the program says for certain goes first";
}

TEST(FirstFailure, a_worker_that_has_departed_in_another_attempt_tells_nothing) {
  Observed world = running_without_the_drained(143);
  world.departed[0].attempt = 1;
  EXPECT_EQ(judge(world).first_failure->cause, FailureCause::pod_deleted);
}

TEST(Departed, are_workers_of_the_attempt_that_runs_that_have_ended_badly_or_must_leave) {
  const Observed world = running_without_the_drained(143);
  const TrainingJob& job = world.job;
  const Pod& drained = world.departed[0];
  EXPECT_TRUE(has_departed(job, drained));
  const auto with = [&](auto change) {
    auto changed = std::pair(job, drained);
    change(changed.first, changed.second);
    return has_departed(changed.first, changed.second);
  };
  EXPECT_TRUE(with([](auto&, Pod& pod) { pod.exit.reset(), pod.phase = PodPhase::running; }))
      << "the node controller deletes it without an end";
  EXPECT_TRUE(with([](auto&, Pod& pod) { pod.conditions.clear(); }));
  EXPECT_FALSE(with([](auto&, Pod& pod) {
    pod.conditions.clear();
    pod.exit.reset();
    pod.phase = PodPhase::running;
  }));
  EXPECT_FALSE(with([](auto& of, Pod&) { of.status.phase = Phase::restarting; }));
  EXPECT_FALSE(with([](auto&, Pod& pod) { pod.attempt = 1; }));
  EXPECT_FALSE(with([](auto&, Pod& pod) { pod.worker_index = 2; }));
  EXPECT_FALSE(with([](auto&, Pod& pod) { pod.meta.name = "j-worker-0"; }));
  EXPECT_FALSE(with([](auto&, Pod& pod) { pod.meta.controller_uid = "another"; }));
}

}  // namespace
}  // namespace tj
