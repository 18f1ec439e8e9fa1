// Where attempt 0 is on record before the job has a status: in its Service.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/plan/manifest.h"
#include "operator/plan/plan.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {

const TimePoint kNow{std::chrono::seconds{1'800'000'000}};

/// A job of two, as it comes.
Observed new_job() {
  Observed world{.now = kNow};
  world.job.meta = {.name = "a", .ns = "n", .uid = "uid-1", .generation = 1};
  world.job.spec.worker_count = 2;
  world.job.spec.pod_template_json = R"({"spec":{"containers":[{"name":"m","image":"i"}]}})";
  return world;
}

/// The children of `next` are there; its status has not been written.
void carry_out_but_the_status(Observed& world, const Plan& next) {
  TrainingJob recorded = world.job;
  recorded.status = next.status;
  for (const Action& action : next.actions) {
    if (std::holds_alternative<CreateService>(action)) {
      world.service = trim_service(make_service(recorded)).value();
    } else if (const auto* create = std::get_if<CreatePod>(&action)) {
      Pod pod = trim_pod(make_pod(recorded, *create)).value();
      pod.meta.controller_uid = world.job.meta.uid;
      world.pods.push_back(pod);
    }
  }
  world.has_begun = true;
}

Observed begun_without_a_status() {
  Observed world = new_job();
  carry_out_but_the_status(world, plan(world));
  return world;
}

int creations(const Plan& plan) {
  return static_cast<int>(std::count_if(
      plan.actions.begin(), plan.actions.end(),
      [](const Action& action) { return std::holds_alternative<CreatePod>(action); }));
}

TEST(FirstAttempt, begins_with_its_service_and_needs_no_status) {
  const Plan first = plan(new_job());
  EXPECT_FALSE(first.must_persist_first);
  EXPECT_EQ(creations(first), 2);
  Observed world = begun_without_a_status();
  ASSERT_TRUE(world.service->first_attempt);
  EXPECT_EQ(world.service->first_attempt->world_size, 2);
  EXPECT_EQ(world.service->first_attempt->template_hash, template_hash(world.job.spec));
  const Plan next = plan(world);
  EXPECT_TRUE(next.actions.empty());
  EXPECT_EQ(next.status.world_size, 2);
  EXPECT_EQ(next.status.start_time, kNow);
}

TEST(FirstAttempt, is_ended_by_a_change_of_the_spec_that_came_before_its_status) {
  Observed world = begun_without_a_status();
  world.job.spec.worker_count = 3;
  world.job.meta.generation = 2;
  const Plan next = plan(world);
  EXPECT_EQ(next.status.attempt, 1);
  EXPECT_EQ(next.status.world_size, 3);
  EXPECT_EQ(next.status.reason, reason::kSpecChanged);
  EXPECT_TRUE(next.must_persist_first);
}

TEST(FirstAttempt, goes_on_with_pods_that_are_missing_only_once_it_is_in_the_status) {
  Observed world = begun_without_a_status();
  world.pods.pop_back();
  Plan next = plan(world);
  EXPECT_EQ(creations(next), 1);
  EXPECT_TRUE(next.must_persist_first) << "another operator may have begun, and gone on since";
  world.job.status = next.status;
  EXPECT_FALSE(plan(world).must_persist_first);
}

TEST(FirstAttempt, without_its_service_is_what_the_spec_says_if_that_never_changed) {
  Observed world = begun_without_a_status();
  world.service.reset();
  EXPECT_EQ(plan(world).status.attempt, 0);
  EXPECT_TRUE(plan(world).must_persist_first);
  world.job.meta.generation = 2;
  EXPECT_EQ(plan(world).status.attempt, 1);
  world.pods.clear();
  EXPECT_EQ(plan(world).status.attempt, 1) << "it had some";
  world.has_begun = false;
  EXPECT_EQ(plan(world).status.attempt, 0);
}

TEST(FirstAttempt, that_was_suspended_meanwhile_is_over) {
  Observed world = begun_without_a_status();
  world.job.spec.run.suspend = true;
  EXPECT_EQ(plan(world).status.attempt, 1);
  world.job.status.phase = Phase::suspended;  // written by a leader who had seen no Service
  EXPECT_EQ(plan(world).status.attempt, 1);
}

TEST(FirstAttempt, is_not_taken_from_the_service_of_another_owner) {
  Observed world = begun_without_a_status();
  world.service->meta.controller_uid = "uid-0";
  EXPECT_EQ(plan(world).status.reason, reason::kNameConflict);
}

TEST(FirstAttempt, with_a_record_that_says_nonsense_has_none) {
  nlohmann::json service = make_service(new_job().job);
  nlohmann::json& annotations = service["metadata"]["annotations"];
  for (const char* nonsense : {"0", "-1", "10001", "two", ""}) {
    annotations = {{names::kAnnotationWorldSize, nonsense},
                   {names::kAnnotationTemplateHash, "v1-0"}};
    EXPECT_FALSE(trim_service(service)->first_attempt) << nonsense;
  }
  annotations = {{names::kAnnotationWorldSize, "2"}};
  EXPECT_FALSE(trim_service(service)->first_attempt);
  annotations = 5;
  EXPECT_FALSE(trim_service(service)->first_attempt);
}

}  // namespace
}  // namespace tj
