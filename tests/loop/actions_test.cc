// The rarer actions of a plan, as the server sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/loop/alarm.h"
#include "operator/loop/apply.h"
#include "operator/loop/view.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::IsEmpty;

TEST(Actions, a_pod_that_can_not_be_made_is_a_refusal_and_no_crash) {
  World world;
  world.create_job("a", 1);
  View view([] { return TimePoint{}; });
  view.wrote(Resource::training_jobs, world.job("a").dump());
  TrainingJob job = *view.jobs().find({"default", "a"});
  job.status.excluded_nodes = {"\xff"};  // no JSON holds it
  Alarm alarm(world.loop(), [&] { return world.steady_now(); });
  Applier applier(world.api(), view, alarm, 1, "", [](const ObjectKey&) {});
  std::optional<ApplyOutcome> seen;
  applier.create(job, {CreatePod{.worker_index = 0, .attempt = 0}},
                 [&](const ApplyOutcome& outcome) { seen = outcome; });
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->complete);
  EXPECT_EQ(seen->refusal, Refusal::internal);
  EXPECT_THAT(seen->create_error.value_or(""), testing::StartsWith("pod a-worker-0 can't be made"));
}

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
  const json foreign{{"apiVersion", "networking.k8s.io/v1"},
                     {"kind", "NetworkPolicy"},
                     {"metadata", {{"name", "a"}, {"namespace", "default"}}}};
  ASSERT_TRUE(world.objects().create(Resource::network_policies, "default", foreign).ok());
  world.start_controller();
  world.create_job("a", 1, {{"network", {{"networkPolicy", true}}}});
  world.pass(1min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_EQ(world.requests("create pods"), 0);
}

void patch_job(World& world, const json& patch) {
  ASSERT_TRUE(world.objects().patch(Resource::training_jobs, {"default", "a"}, patch).ok());
  world.pass(1min);
}

TEST(Actions, the_network_policy_follows_the_job_and_goes_when_it_is_not_wanted) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 1, {{"network", {{"networkPolicy", true}}}});
  world.pass(1min);
  const auto port = [&world] {
    return world.get(Resource::network_policies, "a")["spec"]["ingress"][1]["ports"][0]["port"];
  };
  EXPECT_EQ(port(), 29600);
  patch_job(world, {{"metadata", {{"annotations", {{"kubebrain.io/progress-port", "9000"}}}}}});
  EXPECT_EQ(port(), 9000);
  EXPECT_EQ(world.requests("update networkpolicies"), 1);
  world.restart_controller();
  world.pass(1min);
  EXPECT_EQ(world.requests("update networkpolicies"), 1);
  EXPECT_EQ(world.requests("get networkpolicies"), 1) << "that it is right stands in the status";

  patch_job(world, {{"spec", {{"runPolicy", {{"suspend", true}}}}}});
  patch_job(world, {{"spec", {{"network", {{"networkPolicy", false}}}}}});
  patch_job(world, {{"spec", {{"runPolicy", {{"suspend", false}}}}}});
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_TRUE(world.get(Resource::network_policies, "a").is_null());
  EXPECT_EQ(world.requests("delete networkpolicies"), 1);
}

TEST(Actions, a_network_policy_that_may_not_be_changed_is_said_and_the_job_runs_on) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 1, {{"network", {{"networkPolicy", true}}}});
  world.pass(1min);
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.verb != Verb::replace) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "networkpolicies is forbidden", "", {}}};
  });
  patch_job(world, {{"metadata", {{"annotations", {{"kubebrain.io/progress-port", "9000"}}}}}});
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.reason("a"), "CreateFailed");
  world.api().set_request_fault(nullptr);
  world.pass(2min);
  EXPECT_EQ(world.reason("a"), "WorkersRunning");
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
