// Small worlds, all of them: every combination of pod states and phases for one to three workers.
#include <gtest/gtest.h>

#include <set>

#include "operator/plan/plan.h"

namespace tj {
namespace {

enum class State {
  absent,
  pending,
  running,
  succeeded,
  failed,
  peer_lost,
  terminating,
  leftover,
  foreign
};
constexpr int kStates = 9;

Pod pod_in(State state, int rank, int attempt = 0) {
  Pod pod;
  pod.meta.name = names::worker_pod("j", rank);
  pod.meta.uid = "pod-" + std::to_string(rank);
  pod.meta.controller_uid = state == State::foreign ? "somebody" : "uid";
  pod.job_name = "j";
  pod.worker_index = rank;
  pod.attempt = state == State::leftover ? -1 : attempt;
  const TimePoint finished_at{std::chrono::seconds{100 + rank}};
  if (state == State::running || state == State::terminating) pod.phase = PodPhase::running;
  if (state == State::terminating) pod.meta.deletion_time = finished_at;
  if (state == State::succeeded) {
    pod.phase = PodPhase::succeeded;
    pod.exit = ContainerExit{
        .exit_code = 0, .reason = "Completed", .message = {}, .finished_at = finished_at};
  }
  if (state == State::failed || state == State::peer_lost) {
    pod.phase = PodPhase::failed;
    pod.exit = ContainerExit{.exit_code = state == State::failed ? 1 : 76,
                             .reason = "Error",
                             .message = {},
                             .finished_at = finished_at};
  }
  return pod;
}

Observed world_of(int worker_count, int code, Phase phase) {
  Observed world;
  world.job.meta = {
      .name = "j", .ns = "default", .uid = "uid", .resource_version = "1", .generation = 1};
  world.job.spec.worker_count = worker_count;
  world.job.status.phase = phase;
  world.now = TimePoint{std::chrono::seconds{200}};
  for (int rank = 0; rank < worker_count; ++rank, code /= kStates) {
    const auto state = static_cast<State>(code % kStates);
    if (state != State::absent) world.pods.push_back(pod_in(state, rank));
  }
  return world;
}

/// kubectl wait --for=condition=...: at most one is true, the one that is named as the phase.
void check_conditions(const JobStatus& status) {
  for (const Condition& condition : status.conditions)
    EXPECT_EQ(condition.status, condition.type == to_string(status.phase)) << condition.type;
}

void check_plan(const Observed& world, const Plan& next) {
  check_conditions(next.status);
  std::set<int> occupied;
  std::set<std::string> owned;
  for (const Pod& pod : world.pods) {
    occupied.insert(pod.worker_index);
    if (pod.meta.controller_uid == world.job.meta.uid) owned.insert(pod.meta.uid);
  }
  for (const Action& action : next.actions) {
    if (const auto* create = std::get_if<CreatePod>(&action)) {
      EXPECT_TRUE(occupied.insert(create->worker_index).second)
          << "two pods of rank " << create->worker_index;
      EXPECT_EQ(create->attempt, world.job.status.attempt);
    }
    if (const auto* remove = std::get_if<DeletePod>(&action)) {
      EXPECT_TRUE(owned.count(remove->uid)) << remove->name;
    }
  }
  if (is_terminal(world.job.status.phase)) {
    EXPECT_EQ(next.status.phase, world.job.status.phase);
    EXPECT_EQ(next.status.completion_time, world.job.status.completion_time);
  } else if (is_terminal(next.status.phase)) {
    EXPECT_TRUE(next.actions.empty()) << "acts on a verdict that is not persisted";
    EXPECT_TRUE(next.status.completion_time.has_value());
  }
}

void carry_out(Observed& world, const Plan& next) {
  for (const Action& action : next.actions) {
    if (std::holds_alternative<CreateService>(action))
      world.service = Service{.meta = {.name = "j", .controller_uid = "uid"}, .job_name = "j"};
    if (const auto* create = std::get_if<CreatePod>(&action))
      world.pods.push_back(pod_in(State::pending, create->worker_index, create->attempt));
    if (const auto* remove = std::get_if<DeletePod>(&action))
      std::erase_if(world.pods, [&](const Pod& pod) { return pod.meta.uid == remove->uid; });
  }
  world.job.status = next.status;
}

TEST(PlanSweep, every_small_world_reaches_a_fixed_point_and_breaks_no_rule) {
  int worlds = 0;
  for (int worker_count = 1; worker_count <= 3; ++worker_count) {
    int combinations = 1;
    for (int i = 0; i < worker_count; ++i) combinations *= kStates;
    for (int code = 0; code < combinations; ++code) {
      for (const Phase phase :
           {Phase::pending, Phase::starting, Phase::running, Phase::succeeded, Phase::failed}) {
        SCOPED_TRACE("workers=" + std::to_string(worker_count) + " code=" + std::to_string(code) +
                     " phase=" + to_string(phase));
        Observed world = world_of(worker_count, code, phase);
        constexpr int kRoundsMax = 10;
        int rounds = 0;
        for (Plan next = plan(world); rounds < kRoundsMax; next = plan(world), ++rounds) {
          check_plan(world, next);
          if (next.actions.empty() && next.status == world.job.status) break;
          carry_out(world, next);
        }
        ASSERT_LT(rounds, kRoundsMax) << "never settles";
        ++worlds;
      }
    }
  }
  EXPECT_EQ(worlds, (9 + 81 + 729) * 5);
}

}  // namespace
}  // namespace tj
