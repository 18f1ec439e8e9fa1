// One story, broken at each of its requests in each way that an API server knows: the end must be
// the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr int kWorkers = 3;
constexpr int kStoryRequestsMax = 60;

struct Fault {
  const char* name;
  RequestFault fault;
};

RequestFault before(Code code, std::optional<std::chrono::milliseconds> retry_after = {}) {
  return {RequestFault::Kind::fail_before, Error{code, "injected", "", retry_after}};
}

std::vector<Fault> all_faults() {
  return {
      {"409", before(Code::conflict)},
      {"410", before(Code::gone)},
      {"403", before(Code::forbidden)},
      {"404", before(Code::not_found)},
      {"429", before(Code::unavailable, 3s)},
      {"500", before(Code::unavailable)},
      {"internal", before(Code::internal)},
      {"timeout before the effect", before(Code::timeout)},
      {"timeout after the effect",
       {RequestFault::Kind::fail_after, Error{Code::timeout, "injected", "", {}}}},
      {"reset after the effect",
       {RequestFault::Kind::fail_after, Error{Code::unavailable, "injected", "", {}}}},
  };
}

/// Runs the job to its end and checks everything that must hold there.
void expect_good_end(World& world, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(5min);
  EXPECT_EQ(world.phase("a"), "Succeeded");
  EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-0", "a-worker-1", "a-worker-2"));
  EXPECT_EQ(world.objects().objects(Resource::services).size(), 1u);
  EXPECT_EQ(world.job("a")["status"]["replicaStatuses"]["Worker"]["succeeded"], kWorkers);
  EXPECT_EQ(world.requests("delete"), 0);
  const int writes = world.writes();
  world.pass(10min);
  EXPECT_EQ(world.writes(), writes) << "it has come to rest";
}

/// How many requests the story has when nothing goes wrong.
int story_requests() {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.start_controller();
  world.create_job("a", kWorkers);
  expect_good_end(world, "no fault");
  return static_cast<int>(world.api().request_log().size());
}

TEST(Faults, any_request_may_fail_in_any_way) {
  const int request_count = story_requests();
  ASSERT_GT(request_count, 3 + 1 + kWorkers + 4);
  ASSERT_LT(request_count, kStoryRequestsMax);
  for (const Fault& fault : all_faults()) {
    for (int index = 0; index < request_count; index += kIsSanitized ? 3 : 1) {
      World world;
      world.set_kubelet(Kubelet::runs_pods_to_the_end);
      int seen = 0;
      world.api().set_request_fault([&](const Request&) {
        return seen++ == index ? std::optional(fault.fault) : std::nullopt;
      });
      world.start_controller();
      world.create_job("a", kWorkers);
      expect_good_end(world, std::string(fault.name) + " at request " + std::to_string(index));
    }
  }
}

TEST(Faults, every_third_request_may_fail) {
  for (const Fault& fault : all_faults()) {
    World world;
    world.set_kubelet(Kubelet::runs_pods_to_the_end);
    int seen = 0;
    world.api().set_request_fault([&](const Request&) {
      return seen++ % 3 == 2 ? std::optional(fault.fault) : std::nullopt;
    });
    world.start_controller();
    world.create_job("a", kWorkers);
    expect_good_end(world, fault.name);
  }
}

TEST(Faults, the_operator_may_be_killed_at_any_request) {
  const int request_count = story_requests();
  for (int index = 0; index < request_count; ++index) {
    World world;
    world.set_kubelet(Kubelet::runs_pods_to_the_end);
    int seen = 0;
    world.api().set_request_fault([&](const Request&) -> std::optional<RequestFault> {
      if (seen++ == index) world.restart_soon();
      return std::nullopt;
    });
    world.start_controller();
    world.create_job("a", kWorkers);
    expect_good_end(world, "killed at request " + std::to_string(index));
    EXPECT_LE(world.requests("create pods"), 2 * kWorkers);
  }
}

TEST(Faults, the_operator_may_be_killed_after_each_write) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    const bool is_write = request.verb != Verb::list && request.verb != Verb::get;
    if (is_write) world.restart_soon();
    return std::nullopt;
  });
  world.start_controller();
  world.create_job("a", kWorkers);
  expect_good_end(world, "killed after each write");
}

TEST(Faults, a_failed_job_ends_the_same_wherever_the_operator_is_killed) {
  for (int index = 0; index < kStoryRequestsMax; index += kIsSanitized ? 2 : 1) {
    World world;
    world.set_kubelet(Kubelet::starts_pods);
    int seen = 0;
    world.api().set_request_fault([&](const Request&) -> std::optional<RequestFault> {
      if (seen++ == index) world.restart_soon();
      return std::nullopt;
    });
    world.start_controller();
    world.create_job("a", kWorkers);
    ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
    world.end_pod("a-worker-2", 64);
    world.pass(5min);
    EXPECT_EQ(world.phase("a"), "Failed") << "killed at request " << index;
    EXPECT_EQ(world.job("a")["status"]["firstFailure"]["rank"], 2);
    EXPECT_THAT(world.pod_names(), ElementsAre("a-worker-2")) << "killed at request " << index;
  }
}

TEST(Faults, lines_of_a_watch_may_come_twice) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.api().set_line_fault(
      [](const WatchRequest&, const std::string&) { return LineFault::duplicate; });
  world.start_controller();
  world.create_job("a", kWorkers);
  expect_good_end(world, "duplicated lines");
  EXPECT_EQ(world.requests("create pods"), kWorkers);
}

TEST(Faults, lines_of_a_watch_may_be_late) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  world.api().set_line_fault(
      [](const WatchRequest&, const std::string&) { return LineFault::delay; });
  world.start_controller();
  world.create_job("a", kWorkers);
  for (int i = 0; i < 100; ++i) {
    world.pass(1s);
    world.api().release_lines();
  }
  world.api().set_line_fault(nullptr);
  expect_good_end(world, "late lines");
  EXPECT_EQ(world.requests("create pods"), kWorkers) << "we read our own writes";
}

/// Whatever is lost with a stream is in the next one, or in the list after a 410.
TEST(Faults, a_watch_may_break_after_any_line_with_everything_after_it) {
  for (const bool is_compacted : {false, true}) {
    for (int index = 0; index < 25; index += kIsSanitized ? 4 : 1) {
      World world;
      world.set_kubelet(Kubelet::runs_pods_to_the_end);
      int lines = 0;
      world.api().set_line_fault([&](const WatchRequest&, const std::string&) {
        return lines++ >= index ? LineFault::drop : LineFault::none;
      });
      world.start_controller();
      world.create_job("a", kWorkers);
      world.pass(1min);
      world.api().set_line_fault(nullptr);
      if (is_compacted) world.objects().compact();
      world.api().end_watches(Error{Code::unavailable, "connection reset", "", {}});
      expect_good_end(world, "broken after line " + std::to_string(index) +
                                 (is_compacted ? ", history gone" : ""));
    }
  }
}

}  // namespace
}  // namespace tj
