// The controller over the in-memory API server: whole lives of jobs, and what they cost.
#include "operator/loop/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/read.h"
#include "operator/api/validate.h"
#include "operator/loop/status_pace.h"
#include "tests/hostile/hostile.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Controller, carries_a_job_from_pending_to_succeeded) {
  World world;
  world.start_controller();
  world.create_job("a", 2);
  world.settle();
  EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-0", "a-worker-1"));
  EXPECT_FALSE(world.get(Resource::services, "a").is_null());
  world.pass(StatusPace::kComingUpMax);
  EXPECT_EQ(world.phase("a"), "Starting");

  world.start_pod("a-worker-0");
  world.pass(StatusPace::kIntervalMin);
  EXPECT_EQ(world.phase("a"), "Starting");
  EXPECT_EQ(world.job("a")["status"]["ready"], "1/2");
  world.start_pod("a-worker-1");
  world.pass(2s);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.job("a")["status"]["ready"], "2/2");

  world.end_pod("a-worker-1", 0);
  world.end_pod("a-worker-0", 0);
  world.settle();
  EXPECT_EQ(world.phase("a"), "Succeeded");
  EXPECT_EQ(world.pod_names().size(), 2u) << "ended workers stay for their logs";
}

TEST(Controller, creates_the_service_before_the_pods_and_nothing_twice) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 20);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  EXPECT_EQ(world.requests("create services"), 1);
  EXPECT_EQ(world.requests("create pods"), 20);
  EXPECT_LE(world.requests("patch"), 6);
  const auto& log = world.api().request_log();
  const auto first = [&](const std::string& prefix) {
    return std::find_if(log.begin(), log.end(),
                        [&](const std::string& line) { return line.starts_with(prefix); });
  };
  EXPECT_LT(first("create services"), first("create pods"));
  EXPECT_LT(first("create pods"), first("patch")) << "its Service says what they are made from";
  const json annotations = world.get(Resource::services, "a")["metadata"]["annotations"];
  EXPECT_EQ(annotations[names::kAnnotationWorldSize], "20");
  EXPECT_EQ(annotations[names::kAnnotationTemplateHash], world.job("a")["status"]["templateHash"]);
}

TEST(Controller, leaves_a_settled_job_alone) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 3);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(1min);
  const int writes = world.writes();
  world.pass(1h);
  world.restart_controller();
  world.pass(1h);
  EXPECT_EQ(world.writes(), writes);
}

TEST(Controller, leaves_a_running_job_alone_after_a_restart) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 3);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.pass(1min);
  const int writes = world.writes();
  world.restart_controller();
  world.pass(1min);
  EXPECT_EQ(world.writes(), writes);
}

TEST(Controller, stops_the_other_workers_only_after_the_failure_is_in_the_status) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 3);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.end_pod("a-worker-1", 64);
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Failed");
  EXPECT_EQ(world.job("a")["status"]["firstFailure"]["rank"], 1);
  EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-1")) << "the culprit stays for its log";
  const auto& log = world.api().request_log();
  const auto first_delete = std::find_if(
      log.begin(), log.end(), [](const std::string& line) { return line.starts_with("delete"); });
  const auto patches_before = std::count_if(
      log.begin(), first_delete, [](const std::string& line) { return line.starts_with("patch"); });
  EXPECT_GE(patches_before, 2) << "Running, Failed";
  EXPECT_EQ(world.requests("delete"), 2);
}

TEST(Controller, a_bug_in_the_decision_about_one_job_costs_no_other) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  bool is_broken = true;
  int looks = 0;
  world.options().decide = [&](const Observed& observed) {
    if (is_broken && observed.job.meta.name == "bad") {
      ++looks;
      throw std::out_of_range("key 'x' not found");
    }
    return plan(observed);
  };
  world.start_controller();
  world.create_job("bad", 2);
  world.create_job("good", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("good") == "Succeeded"; }));
  world.pass(10min);
  EXPECT_EQ(world.phase("bad"), "Pending") << "no bug of ours ends a job";
  EXPECT_EQ(world.reason("bad"), "InternalError");
  EXPECT_EQ(world.job("bad")["status"]["message"], "a bug of the operator: key 'x' not found");
  EXPECT_THAT(world.event_reasons(), Contains("InternalError").Times(1));
  EXPECT_LE(looks, 35) << "with backoff";
  is_broken = false;
  EXPECT_TRUE(world.pass_until([&] { return world.phase("bad") == "Succeeded"; }));
}

TEST(Controller, a_bug_in_mid_life_leaves_the_job_in_its_phase) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  bool is_broken = false;
  world.options().decide = [&](const Observed& observed) {
    if (is_broken) throw std::runtime_error("a bug");
    return plan(observed);
  };
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  is_broken = true;
  world.end_pod("a-worker-0", 0);
  world.pass(5min);
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.reason("a"), "InternalError");
  is_broken = false;
  world.end_pod("a-worker-1", 0);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
}

TEST(Controller, hostile_jobs_disturb_no_other) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  const int count = kIsSanitized ? 50 : 300;
  int accepted = 0;
  for (const auto& [what, manifest] : some_hostile_manifests(count, 1)) {
    accepted += world.objects().create(Resource::training_jobs, "default", manifest).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, count * 5 / 6) << "there is no schema here";
  world.create_job("good", 2);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("good") == "Succeeded"; }));
  world.pass(10min);
  int judged = 0;
  for (const json& job : world.objects().objects(Resource::training_jobs, "default", "")) {
    const std::string name = read::string_at(read::object_at(job, "metadata"), "name");
    if (name.empty()) continue;  // no server would have taken it
    const auto errors = validate_spec(name, read::value_at(job, "spec"));
    const std::string reason = read::string_at(read::object_at(job, "status"), "reason");
    EXPECT_NE(reason, "InternalError") << job.dump();
    EXPECT_TRUE(errors.empty() || reason == "Invalid") << describe(errors);
    judged += errors.empty() ? 0 : 1;
  }
  EXPECT_GT(judged, count / 3) << "of those with a name and with something wrong";
}

TEST(Controller, decides_nothing_before_all_three_lists_are_there) {
  World world;
  world.create_job("a", 2);
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.verb != Verb::list || request.resource != Resource::services) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "services is forbidden", "services", {}}};
  });
  world.start_controller();
  world.pass(1min);
  EXPECT_EQ(world.writes(), 0);
  EXPECT_FALSE(world.controller().synced());
  EXPECT_THAT(world.controller().not_ready_reason(), HasSubstr("services is forbidden"));
  world.api().set_request_fault(nullptr);
  world.pass(2min);
  EXPECT_TRUE(world.controller().synced());
  EXPECT_EQ(world.controller().not_ready_reason(), "");
  EXPECT_EQ(world.phase("a"), "Starting");
}

TEST(Controller, says_that_the_server_is_unreachable_and_recovers) {
  World world;
  world.start_controller();
  world.settle();
  EXPECT_EQ(world.controller().not_ready_reason(), "");
  const Error refused{Code::unavailable, "connection refused", "https://127.0.0.1:6443", {}};
  const RequestFault fault{RequestFault::Kind::fail_before, refused};
  world.api().set_request_fault([fault](const Request&) { return std::optional(fault); });
  world.api().set_watch_fault([refused](const WatchRequest&) { return std::optional(refused); });
  world.api().end_watches(refused);
  world.pass(2min);
  EXPECT_THAT(world.controller().not_ready_reason(), HasSubstr("connection refused"));
  world.api().set_request_fault(nullptr);
  world.api().set_watch_fault(nullptr);
  world.create_job("a", 1);
  world.pass(2min);
  EXPECT_EQ(world.controller().not_ready_reason(), "");
  EXPECT_EQ(world.phase("a"), "Starting");
}

TEST(Controller, creates_nothing_for_a_job_that_is_deleted_and_forgets_it) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 4);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  ASSERT_TRUE(world.objects().remove(Resource::training_jobs, {"default", "a"}).ok());
  world.pass(1min);
  EXPECT_THAT(world.pod_names(), IsEmpty()) << "the owner garbage collection's work";
  EXPECT_EQ(world.requests("create pods"), 4);
}

TEST(Controller, a_job_deleted_at_any_request_leaves_nothing_behind) {
  int deleted_count = 0;
  for (bool was_deleted = true; was_deleted; ++deleted_count) {
    World world;
    world.set_kubelet(Kubelet::runs_pods_to_the_end);
    int seen = 0;
    was_deleted = false;
    world.api().set_request_fault([&](const Request&) -> std::optional<RequestFault> {
      if (seen++ != deleted_count) return std::nullopt;
      was_deleted = world.objects().remove(Resource::training_jobs, {"default", "a"}).ok();
      return std::nullopt;
    });
    world.start_controller();
    world.create_job("a", 3);
    world.pass(10min);
    if (!was_deleted) break;  // the story has fewer requests than that
    EXPECT_TRUE(world.job("a").is_null());
    EXPECT_THAT(world.pod_names(), IsEmpty()) << "deleted at request " << deleted_count;
    EXPECT_TRUE(world.get(Resource::services, "a").is_null())
        << "deleted at request " << deleted_count;
  }
  EXPECT_GE(deleted_count, 12) << "3 lists, 4 creations, the writes of 5 statuses or more";
}

TEST(Controller, a_job_made_again_under_its_name_gets_its_own_children) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  ASSERT_TRUE(world.objects().remove(Resource::training_jobs, {"default", "a"}).ok());
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  const auto uid = world.job("a")["metadata"]["uid"];
  for (const std::string& name : world.pod_names()) {
    EXPECT_EQ(world.get(Resource::pods, name)["metadata"]["ownerReferences"][0]["uid"], uid);
  }
  EXPECT_EQ(world.pod_names().size(), 2u);
}

TEST(Controller, fails_a_job_whose_spec_cannot_be_read_and_creates_nothing) {
  World world;
  world.start_controller();
  world.create_job("a", 0);
  world.pass(1min);
  EXPECT_EQ(world.phase("a"), "Failed");
  EXPECT_EQ(world.reason("a"), "Invalid");
  EXPECT_EQ(world.requests("create pods"), 0);
}

TEST(Controller, records_events_after_the_status_they_tell_of) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(1min);
  EXPECT_THAT(world.event_reasons(), ElementsAre("WorkersRunning", "WorkersSucceeded"));
  EXPECT_EQ(world.requests("create events"), 2);
}

TEST(Controller, delivers_an_event_that_the_server_was_too_busy_for) {
  World world;
  int refusals_left = 3;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::events || refusals_left-- <= 0) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::unavailable, "too many requests", "", 2s}};
  });
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", 1);
  world.pass(5min);
  EXPECT_EQ(world.event_reasons().size(), 2u);
}

TEST(Controller, an_event_that_one_namespace_refuses_holds_up_no_other) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::events || request.ns != "slow") return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::unavailable, "too many requests", "", 20s}};
  });
  world.start_controller();
  world.create_job("s", 1, nlohmann::json::object(), "slow");
  world.pass(StatusPace::kComingUpMax);
  EXPECT_THAT(world.event_reasons(), IsEmpty());
  world.create_job("a", 1);
  world.pass(StatusPace::kComingUpMax);
  EXPECT_THAT(world.event_reasons(), ElementsAre("WaitingForWorkers"));
}

TEST(Controller, a_namespace_whose_creations_hang_holds_up_no_other) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    const bool hangs = request.verb == Verb::create && request.ns == "slow";
    if (!hangs) return std::nullopt;
    return RequestFault{RequestFault::Kind::hold_answer, {}};
  });
  world.start_controller();
  for (int i = 0; i < 40; ++i) {
    world.create_job("s" + std::to_string(i), 1, nlohmann::json::object(), "slow");
  }
  world.pass(1min);
  world.create_job("a", 1);
  world.settle();
  EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-0"));
}

TEST(Controller, counts_that_move_are_written_at_most_once_a_second) {
  World world;
  world.start_controller();
  world.create_job("a", 50);
  world.settle();
  const int patches = world.requests("patch");
  for (int rank = 0; rank < 49; ++rank) {
    world.start_pod("a-worker-" + std::to_string(rank));
    world.pass(10ms);
  }
  world.pass(2s);
  EXPECT_LE(world.requests("patch") - patches, 3);
  EXPECT_EQ(world.job("a")["status"]["ready"], "49/50");
  world.start_pod("a-worker-49");
  world.settle();
  EXPECT_EQ(world.phase("a"), "Running") << "a change of phase does not wait";
}

TEST(Controller, a_rank_that_has_succeeded_is_on_record_before_its_pod_can_go) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 3);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.pass(1h);
  for (const std::string name : {"a-worker-1", "a-worker-2"}) {
    world.end_pod(name, 0);
    world.pass(1s);
    ASSERT_TRUE(world.objects().remove(Resource::pods, {"default", name}).ok());
    world.pass(1s);
  }
  EXPECT_EQ(world.phase("a"), "Running");
  EXPECT_EQ(world.job("a")["status"]["succeededRanks"], "1-2");
  world.end_pod("a-worker-0", 0);
  world.settle();
  EXPECT_EQ(world.phase("a"), "Succeeded");
  EXPECT_EQ(world.requests("create pods"), 3);
}

TEST(Controller, sends_nothing_after_stop) {
  World world;
  world.start_controller();
  world.settle();
  world.controller().stop();
  world.create_job("a", 2);
  world.pass(1min);
  EXPECT_EQ(world.writes(), 0);
  EXPECT_EQ(world.controller().requests_in_flight(), 0u);
}

}  // namespace
}  // namespace tj
