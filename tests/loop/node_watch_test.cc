// Nodes: watched only while somebody needs them, and what their silence does.
#include "operator/loop/node_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/loop/status_pace.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;

/// A job of two workers that run, one on each of two nodes.
void run_on_two_nodes(World& world) {
  for (const char* node : {"n0", "n1"}) world.add_node(node);
  world.start_controller();
  world.create_job("a", 2);
  world.settle();
  for (const char* rank : {"0", "1"}) {
    world.place_pod(std::string("a-worker-") + rank, std::string("n") + rank);
    world.start_pod(std::string("a-worker-") + rank);
  }
  world.pass(5s);
  ASSERT_EQ(world.phase("a"), "Running");
}

int reconciles(World& world) {
  const std::string text = world.metrics().text();
  const std::string name = "trainingjob_reconcile_seconds_count ";
  return std::stoi(text.substr(text.find(name) + name.size()));
}

TEST(NodeWatch, runs_while_a_job_has_pods_and_a_little_longer) {
  World world;
  world.start_controller();
  world.pass(5min);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 0);
  world.create_job("a", 1);
  world.pass(StatusPace::kComingUpMax);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 1);
  world.start_pod("a-worker-0");
  world.end_pod("a-worker-0", 0);
  world.pass(NodeWatch::kLinger - 5s);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 1);
  world.pass(10s);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 0);
  world.create_job("b", 1);
  world.pass(StatusPace::kComingUpMax);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 1) << "and begins again";
}

TEST(NodeWatch, a_heartbeat_wakes_no_job) {
  World world;
  run_on_two_nodes(world);
  const int before = reconciles(world);
  for (int i = 0; i < 10; ++i) {
    world.node_heartbeat("n0");
    world.settle();
  }
  EXPECT_EQ(reconciles(world), before);
  world.silence_node("n0");
  world.settle();
  EXPECT_GT(reconciles(world), before) << "its silence does";
}

TEST(NodeWatch, the_gang_leaves_a_silent_node_and_its_pod_is_removed_by_force) {
  World world;
  run_on_two_nodes(world);
  world.set_kubelet(Kubelet::starts_pods);
  const auto uid = world.get(Resource::pods, "a-worker-1")["metadata"]["uid"];
  world.silence_node("n1");
  world.pass(25s);
  EXPECT_EQ(world.phase("a"), "Running") << "a short silence is no loss";
  world.pass(10s);
  EXPECT_EQ(world.phase("a"), "Restarting");
  EXPECT_EQ(world.job("a")["status"]["firstFailure"]["cause"], "NodeLost");
  EXPECT_EQ(world.get(Resource::pods, "a-worker-1")["metadata"]["uid"], uid) << "not yet";
  EXPECT_EQ(world.get(Resource::pods, "a-worker-0")["metadata"]["labels"]["kubebrain.io/attempt"],
            "1")
      << "its rank need not wait";
  world.pass(30s);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_NE(world.get(Resource::pods, "a-worker-1")["metadata"]["uid"], uid);
}

TEST(NodeWatch, of_a_cluster_that_does_not_allow_it_stops_nothing) {
  World world;
  int refusals = 0;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::nodes) return std::nullopt;
    ++refusals;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "nodes is forbidden", "nodes", {}}};
  });
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  world.pass(9min);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_TRUE(world.controller().synced());
  EXPECT_EQ(world.controller().not_ready_reason(), "");
  EXPECT_EQ(refusals, 1);
  world.api().set_request_fault(nullptr);
  world.pass(2min);
  EXPECT_EQ(world.api().watch_count(Resource::nodes), 1) << "a permission may come";
}

TEST(NodeWatch, can_be_switched_off) {
  World world;
  world.options().watch_nodes = false;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 1);
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.requests("list nodes"), 0);
}

TEST(NodeWatch, forgets_what_it_knew_when_it_ends) {
  World world;
  run_on_two_nodes(world);
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_cache_objects{resource=\"nodes\"} 2"));
  for (const char* pod : {"a-worker-0", "a-worker-1"}) world.end_pod(pod, 0);
  world.pass(2min);
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_cache_objects{resource=\"nodes\"} 0"));
}

class Skewed : public testing::TestWithParam<int> {};

TEST_P(Skewed, clocks_of_the_cluster_hold_no_gang_and_hurry_none) {
  World world;
  world.set_cluster_skew(std::chrono::minutes{GetParam()});
  run_on_two_nodes(world);
  world.pass(30min);
  world.silence_node("n1");
  world.pass(28s);
  EXPECT_EQ(world.phase("a"), "Running") << "nodeLoss.toleranceSeconds is 30";
  world.pass(4s);
  EXPECT_EQ(world.phase("a"), "Restarting");
  EXPECT_EQ(world.reason("a"), "NodeLost");
}

TEST_P(Skewed, clocks_of_the_cluster_leave_five_seconds_for_the_first_cause) {
  World world;
  world.set_cluster_skew(std::chrono::minutes{GetParam()});
  run_on_two_nodes(world);
  world.pass(30min);
  world.end_pod("a-worker-0", 76);
  world.pass(4s);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.job("a")["status"]["attempt"], 0);
  world.pass(2s);
  EXPECT_EQ(world.job("a")["status"]["attempt"], 1);
}

INSTANTIATE_TEST_SUITE_P(Minutes, Skewed, testing::Values(-10, 0, 10));

}  // namespace
}  // namespace tj
