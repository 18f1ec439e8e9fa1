// Names that are taken, creations that are refused: whose is it, and what does it cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json foreign_pod(const std::string& name, const json& labels) {
  return {{"metadata", {{"name", name}, {"namespace", "default"}, {"labels", labels}}},
          {"spec", {{"containers", json::array({{{"name", "x"}, {"image", "x"}}})}}}};
}

MemoryApi::RequestFaultHook refuse_pods(const Error& error) {
  return [error](const Request& request) -> std::optional<RequestFault> {
    const bool is_pod = request.verb == Verb::create && request.resource == Resource::pods;
    if (!is_pod) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before, error};
  };
}

TEST(Ownership, a_foreign_pod_is_neither_adopted_nor_deleted) {
  World world;
  const json pod = foreign_pod("a-worker-1", json::object());
  ASSERT_TRUE(world.objects().create(Resource::pods, "default", pod).ok());
  const auto uid = world.get(Resource::pods, "a-worker-1")["metadata"]["uid"];
  world.start_controller();
  world.create_job("a", 2);
  world.pass(5min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_THAT(world.event_reasons(), testing::Contains("NameConflict"));
  EXPECT_EQ(world.requests("create events"), 1) << "the same news is told once";
  EXPECT_EQ(world.requests("delete"), 0);
  EXPECT_EQ(world.get(Resource::pods, "a-worker-1")["metadata"]["uid"], uid);
  EXPECT_LE(world.requests("create pods"), 25) << "with backoff";

  ASSERT_TRUE(
      world.objects().finish_delete({"default", "a-worker-1"}, uid.get<std::string>()).ok());
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
}

TEST(Ownership, a_foreign_pod_with_our_labels_is_left_alone_too) {
  World world;
  const json labels{{"job-name", "a"},
                    {"kubebrain.io/trainingjob", "a"},
                    {"kubebrain.io/worker-index", "0"},
                    {"kubebrain.io/attempt", "0"}};
  const json pod = foreign_pod("a-worker-0", labels);
  ASSERT_TRUE(world.objects().create(Resource::pods, "default", pod).ok());
  world.start_controller();
  world.create_job("a", 2);
  world.pass(5min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_EQ(world.requests("delete"), 0);
  EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-0"));
}

void set_label(World& world, const std::string& label, const json& value) {
  const json patch{{"metadata", {{"labels", {{label, value}}}}}};
  ASSERT_TRUE(world.objects().patch(Resource::pods, {"default", "a-worker-0"}, patch).ok());
}

TEST(Ownership, labels_that_somebody_changes_neither_move_nor_freeze_a_running_job) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  for (const json& value : {json("7"), json("x"), json(nullptr)}) {
    set_label(world, "kubebrain.io/attempt", value);
    set_label(world, "kubebrain.io/worker-index", value);
    world.pass(1min);
    EXPECT_EQ(world.phase("a"), "Running") << value;
  }
  world.end_pod("a-worker-1", 1);
  world.pass(1min);
  EXPECT_EQ(world.job("a")["status"]["attempt"], 1) << "what happens next is still seen";
  EXPECT_EQ(world.phase("a"), "Running");
}

TEST(Ownership, a_pod_that_has_lost_its_label_is_made_anew) {
  for (const json& value : {json(nullptr), json("b")}) {
    World world;
    world.start_controller();
    world.create_job("a", 2);
    world.settle();
    set_label(world, "kubebrain.io/trainingjob", value);
    world.set_kubelet(Kubelet::runs_pods_to_the_end);
    EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; })) << value;
    EXPECT_EQ(world.requests("delete pods default/a-worker-0"), 1);
    EXPECT_EQ(world.requests("delete pods default/a-worker-1"), 0);
  }
}

TEST(Ownership, a_name_conflict_stays_one_when_a_later_try_fails_otherwise) {
  World world;
  const json pod = foreign_pod("a-worker-1", json::object());
  ASSERT_TRUE(world.objects().create(Resource::pods, "default", pod).ok());
  world.start_controller();
  world.create_job("a", 2);
  world.pass(1min);
  ASSERT_EQ(world.reason("a"), "NameConflict");
  world.api().set_request_fault(refuse_pods({Code::timeout, "no answer", "", {}}));
  world.pass(5min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_THAT(world.event_reasons(), testing::Not(testing::Contains("CreateFailed")));
}

TEST(Ownership, a_foreign_service_of_our_name_stops_the_job_with_a_reason) {
  World world;
  const json service{{"metadata", {{"name", "a"}, {"namespace", "default"}}},
                     {"spec", {{"ports", json::array({{{"port", 80}}})}}}};
  ASSERT_TRUE(world.objects().create(Resource::services, "default", service).ok());
  world.start_controller();
  world.create_job("a", 2);
  world.pass(1min);
  EXPECT_EQ(world.reason("a"), "NameConflict");
  EXPECT_EQ(world.requests("create pods"), 0) << "the Service comes first";
}

TEST(Ownership, a_template_that_the_server_refuses_costs_one_request_and_fails_the_job) {
  World world;
  world.api().set_request_fault(
      refuse_pods({Code::invalid, "spec.containers[0].image: Required value", "", {}}));
  world.start_controller();
  world.create_job("a", 100);
  world.pass(5min);
  EXPECT_EQ(world.phase("a"), "Failed");
  EXPECT_EQ(world.reason("a"), "Invalid");
  EXPECT_THAT(world.job("a")["status"]["message"].get<std::string>(),
              HasSubstr("image: Required value"));
  EXPECT_EQ(world.requests("create pods"), 1);
}

TEST(Ownership, a_refusal_is_never_the_end_of_a_job_that_has_run) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.api().set_request_fault(
      refuse_pods({Code::invalid, "Pod \"a-worker-0\" is invalid: spec: Required value", "", {}}));
  world.end_pod("a-worker-1", 1);
  world.pass(10min);
  EXPECT_EQ(world.phase("a"), "Pending");
  EXPECT_EQ(world.reason("a"), "CreateFailed");
  EXPECT_THAT(world.job("a")["status"]["message"].get<std::string>(), HasSubstr("is invalid"));
  EXPECT_LE(world.requests("create pods"), 35) << "with backoff";
  world.api().set_request_fault(nullptr);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
}

TEST(Ownership, a_quota_is_waited_for_with_backoff_and_a_reason) {
  World world;
  world.api().set_request_fault(refuse_pods({Code::forbidden, "exceeded quota: gpus", "", {}}));
  world.start_controller();
  world.create_job("a", 10);
  world.pass(10min);
  EXPECT_EQ(world.reason("a"), "CreateFailed");
  EXPECT_THAT(world.job("a")["status"]["message"].get<std::string>(), HasSubstr("exceeded quota"));
  EXPECT_THAT(world.event_reasons(), testing::Contains("CreateFailed"));
  EXPECT_LE(world.requests("create pods"), 30);
  EXPECT_LE(world.requests("patch"), 3);
  world.api().set_request_fault(nullptr);
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
}

TEST(Ownership, a_busy_server_is_left_alone_for_as_long_as_it_asks) {
  World world;
  world.api().set_request_fault(refuse_pods({Code::unavailable, "too many requests", "", 20s}));
  world.start_controller();
  world.create_job("a", 10);
  world.settle();
  const int asked = world.requests("create pods");
  world.pass(19s);
  EXPECT_EQ(world.requests("create pods"), asked);
  world.pass(2s);
  EXPECT_EQ(world.requests("create pods"), asked + 1);
}

TEST(Ownership, a_status_that_may_not_be_written_is_tried_with_backoff_and_nothing_follows) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.verb != Verb::patch_status) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "trainingjobs/status is forbidden", "", {}}};
  });
  world.start_controller();
  world.create_job("a", 2);
  world.pass(10min);
  EXPECT_LE(world.requests("patch"), 30);
  EXPECT_EQ(world.requests("create"), 3) << "attempt 0, which its Service has on record";
  world.end_pod("a-worker-1", 1);
  world.pass(10min);
  EXPECT_EQ(world.requests("delete"), 0);
  EXPECT_EQ(world.requests("create"), 3);
  world.api().set_request_fault(nullptr);
  world.pass(2min);
  EXPECT_EQ(world.phase("a"), "Starting");
}

/// A creation took effect, its answer and its line in the watch were lost, and the stream went on.
TEST(Ownership, a_pod_that_the_cache_has_missed_is_found_and_the_list_taken_again) {
  World world;
  world.api().set_line_fault([](const WatchRequest& request, const std::string& line) {
    const bool is_lost =
        request.resource == Resource::pods && line.find("\"a-worker-0\"") != std::string::npos;
    return is_lost ? LineFault::drop : LineFault::none;
  });
  bool lost = false;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    const bool is_pod = request.verb == Verb::create && request.resource == Resource::pods;
    if (!is_pod || std::exchange(lost, true)) return std::nullopt;
    // Newer lines come in before the answer that never comes.
    json other = foreign_pod("other", {{"kubebrain.io/trainingjob", "other"}});
    (void)world.objects().create(Resource::pods, "default", other);
    return RequestFault{RequestFault::Kind::fail_after, Error{Code::timeout, "no answer", "", {}}};
  });
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.pod_names().size() == 3; }));
  world.pass(2s);
  world.api().set_line_fault(nullptr);
  world.start_pod("a-worker-0");
  world.start_pod("a-worker-1");
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.requests("create pods default/a-worker-0"), 2);
}

/// The deletion of a pod finds it gone, and the watch tells of its end only after that answer.
TEST(Ownership, a_rank_whose_pod_was_gone_before_its_deletion_is_filled) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 1);
  world.settle();
  ASSERT_EQ(world.phase("a"), "Running");
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    if (request.verb == Verb::remove) {
      world.api().set_line_fault(
          [](const WatchRequest&, const std::string&) { return LineFault::delay; });
    }
    return std::nullopt;
  });
  world.end_pod("a-worker-0", 1);
  world.pass(10s);
  ASSERT_GE(world.requests("delete pods"), 2) << "the second finds it gone";
  world.api().set_request_fault(nullptr);
  world.api().set_line_fault(nullptr);
  world.api().release_lines();
  world.pass(1min);
  EXPECT_EQ(world.requests("create pods"), 2);
  EXPECT_EQ(world.phase("a"), "Running");
}

TEST(Ownership, a_terminating_pod_of_a_running_gang_is_waited_for_by_the_next) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.place_pod("a-worker-1", "n1");
  const json terminating = world.get(Resource::pods, "a-worker-1")["metadata"]["uid"];
  world.keep_terminating_pods(true);
  const json grace{{"gracePeriodSeconds", 600}};
  ASSERT_TRUE(world.objects().remove(Resource::pods, {"default", "a-worker-1"}, grace).ok());
  world.pass(9min);
  const json left = world.get(Resource::pods, "a-worker-1");
  EXPECT_EQ(left["metadata"]["uid"], terminating) << "its place is nobody else's";
  EXPECT_EQ(left["metadata"]["deletionGracePeriodSeconds"], 600) << "nobody hurries it";
  EXPECT_EQ(world.job("a")["status"]["attempt"], 0) << "its program may still save";
  EXPECT_EQ(world.requests("create pods"), 2);
  EXPECT_EQ(world.requests("delete pods"), 0);
  world.keep_terminating_pods(false);
  const auto runs_again = [&] {
    return world.phase("a") == "Running" && world.job("a")["status"]["attempt"] == 1;
  };
  EXPECT_TRUE(world.pass_until(runs_again));
  EXPECT_EQ(world.requests("create pods"), 4);
}

TEST(Ownership, a_terminating_pod_keeps_its_rank_until_it_has_gone) {
  World world;
  world.start_controller();
  world.create_job("a", 1);
  world.settle();
  world.place_pod("a-worker-0", "n1");
  world.keep_terminating_pods(true);
  ASSERT_TRUE(world.objects().remove(Resource::pods, {"default", "a-worker-0"}).ok());
  world.pass(1min);
  EXPECT_TRUE(world.get(Resource::pods, "a-worker-0")["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(world.requests("create pods"), 1);
  EXPECT_EQ(world.phase("a"), "Starting");
  world.keep_terminating_pods(false);
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Succeeded");
  EXPECT_EQ(world.requests("create pods"), 2);
}

TEST(Ownership, a_worker_whose_end_and_deletion_come_at_once_is_told_by_its_end) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.end_pod("a-worker-1", 7);
  const json at_once{{"gracePeriodSeconds", 0}};
  ASSERT_TRUE(world.objects().remove(Resource::pods, {"default", "a-worker-1"}, at_once).ok());
  world.settle();
  const json failure = world.job("a")["status"]["firstFailure"];
  EXPECT_EQ(failure["exitCode"], 7) << failure;
  EXPECT_EQ(failure["cause"], "ExitCode") << failure;
  const auto runs_again = [&] {
    return world.phase("a") == "Running" && world.job("a")["status"]["attempt"] == 1;
  };
  ASSERT_TRUE(world.pass_until(runs_again));
  ASSERT_TRUE(world.objects().remove(Resource::pods, {"default", "a-worker-1"}, at_once).ok());
  world.settle();
  EXPECT_EQ(world.job("a")["status"]["firstFailure"]["cause"], "PodDeleted")
      << "an end of the attempt before is not told again";
}

}  // namespace
}  // namespace tj
