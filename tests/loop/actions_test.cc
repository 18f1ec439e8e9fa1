// The rarer actions of a plan, as the server sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::IsEmpty;

TEST(Actions, a_job_whose_time_to_live_is_over_goes_with_its_children) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 2, {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(50s);
  EXPECT_EQ(world.phase("a"), "Succeeded");
  world.pass(20s);
  EXPECT_TRUE(world.job("a").is_null());
  EXPECT_THAT(world.pod_names(), IsEmpty());
  EXPECT_EQ(world.requests("delete trainingjobs"), 1);
}

TEST(Actions, a_job_that_was_given_more_time_stays_though_the_cache_is_late) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 1, {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(30s);
  world.api().set_line_fault(
      [](const WatchRequest&, const std::string&) { return LineFault::delay; });
  const json longer{{"spec", {{"runPolicy", {{"ttlSecondsAfterFinished", 3600}}}}}};
  ASSERT_TRUE(world.objects().patch(Resource::training_jobs, {"default", "a"}, longer).ok());
  world.pass(10min);
  EXPECT_EQ(world.phase("a"), "Succeeded");
  EXPECT_EQ(world.requests("delete trainingjobs"), 0);
}

TEST(Actions, the_network_policy_comes_before_the_service_and_belongs_to_the_job) {
  World world;
  world.start_controller();
  world.create_job("a", 1, {{"network", {{"networkPolicy", true}}}});
  world.pass(1min);
  const json policy = world.get(Resource::network_policies, "a");
  ASSERT_FALSE(policy.is_null());
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["uid"], world.job("a")["metadata"]["uid"]);
  const auto& log = world.api().request_log();
  const auto first = [&](const std::string& prefix) {
    return std::find_if(log.begin(), log.end(),
                        [&](const std::string& line) { return line.starts_with(prefix); });
  };
  EXPECT_LT(first("create networkpolicies"), first("create services"));
  EXPECT_EQ(world.requests("create networkpolicies"), 1);
}

TEST(Actions, a_network_policy_of_another_owner_is_left_alone_and_said) {
  World world;
  const json stranger{{"apiVersion", "networking.k8s.io/v1"},
                      {"kind", "NetworkPolicy"},
                      {"metadata", {{"name", "a"}, {"namespace", "default"}}}};
  ASSERT_TRUE(world.objects().create(Resource::network_policies, "default", stranger).ok());
  world.start_controller();
  world.create_job("a", 1, {{"network", {{"networkPolicy", true}}}});
  world.pass(1min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_EQ(world.requests("create pods"), 0);
}

TEST(Actions, nothing_of_a_job_is_touched_that_another_controller_looks_after) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 2, {{"runPolicy", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}});
  world.pass(1h);
  EXPECT_EQ(world.writes(), 0);
  EXPECT_FALSE(world.job("a").contains("status"));
  EXPECT_THAT(world.metrics().text(), testing::HasSubstr("trainingjob_jobs{phase=\"Pending\"} 0"));
}

TEST(Actions, creations_stop_when_the_job_is_suspended_meanwhile) {
  World world;
  int created = 0;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    const bool is_pod = request.verb == Verb::create && request.resource == Resource::pods;
    if (is_pod && ++created == 5) {
      const json patch{{"spec", {{"runPolicy", {{"suspend", true}}}}}};
      (void)world.objects().patch(Resource::training_jobs, {"default", "a"}, patch);
    }
    return std::nullopt;
  });
  world.start_controller();
  world.create_job("a", 100);
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Suspended");
  EXPECT_THAT(world.pod_names(), IsEmpty());
  EXPECT_LT(created, 20);
}

}  // namespace
}  // namespace tj
