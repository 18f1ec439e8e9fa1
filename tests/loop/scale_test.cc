// What a job costs the API server, and that it does not grow faster than the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/loop/reconciler.h"
#include "operator/loop/status_writer.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;

struct Cost {
  int creates = 0;
  int status_writes = 0;
};

/// The workers start one by one, over a minute in all.
Cost cost_of_start(int worker_count) {
  World world;
  world.start_controller();
  world.create_job("a", worker_count);
  world.settle();
  for (int rank = 0; rank < worker_count; ++rank) {
    world.start_pod("a-worker-" + std::to_string(rank));
    world.pass(std::chrono::milliseconds{60'000 / worker_count});
  }
  EXPECT_EQ(world.phase("a"), "Running");
  return {world.requests("create pods") + world.requests("create services"),
          world.requests("patch trainingjobs")};
}

TEST(Scale, a_job_of_n_workers_costs_n_plus_1_creates_and_as_many_status_writes_as_a_small_one) {
  const Cost small = cost_of_start(10);
  const Cost large = cost_of_start(200);
  EXPECT_EQ(small.creates, 11);
  EXPECT_EQ(large.creates, 201);
  EXPECT_NEAR(large.status_writes, small.status_writes, 1);
  EXPECT_LE(large.status_writes, 11) << "its phases, and a count at 1, 3, 7, 15, 31 seconds";
}

TEST(Scale, the_pods_of_one_job_go_before_the_counts_of_another) {
  World world;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    const bool is_of_slow = request.resource == Resource::pods && request.verb == Verb::create &&
                            request.body.find("slow-worker-1") != std::string::npos;
    if (!is_of_slow) return std::nullopt;
    return RequestFault{RequestFault::Kind::hold_answer, {}};
  });
  world.start_controller();
  world.create_job("slow", 2);
  world.settle();
  world.create_job("a", 8);
  world.pass(CountsPace::kBesideCreationsMax - 1s);
  EXPECT_EQ(world.pod_names().size(), 10u);
  EXPECT_EQ(world.phase("a"), "Pending");
  EXPECT_EQ(world.requests("patch trainingjobs"), 2) << "what each begins with";
  world.pass(1s);
  EXPECT_EQ(world.phase("a"), "Starting") << "they don't wait for ever";
  for (int rank = 0; rank < 8; ++rank) world.start_pod("a-worker-" + std::to_string(rank));
  world.settle();
  EXPECT_EQ(world.phase("a"), "Running") << "what somebody waits for is told at once";
  world.api().release_answers();
  world.settle();
  EXPECT_EQ(world.phase("slow"), "Starting");
}

int passes(World& world) {
  const std::string text = world.metrics().text();
  const std::string name = "\ntrainingjob_reconcile_seconds_count ";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

TEST(Scale, a_job_that_is_long_to_decide_about_is_not_decided_about_at_each_news) {
  World world;
  bool is_slow = false;
  std::chrono::milliseconds spent{0};
  world.options().steady_now = [&] {
    if (is_slow) spent += 1ms;  // at each look at the clock
    return world.steady_now() + spent;
  };
  world.start_controller();
  world.create_job("a", 100);
  world.pass(1min);
  const int before = passes(world);
  is_slow = true;
  const auto began = world.steady_now() + spent;
  for (int rank = 0; rank < 99; ++rank) {
    world.start_pod("a-worker-" + std::to_string(rank));
    world.pass(1ms);
  }
  is_slow = false;
  const auto taken = world.steady_now() + spent - began;
  EXPECT_LE((passes(world) - before) * Reconciler::kRestFactor * 1ms, taken + 20ms)
      << "each decision has taken a millisecond at least";
  world.pass(1min);
  EXPECT_EQ(world.job("a")["status"]["ready"], "99/100");
}

TEST(Scale, a_busy_server_is_obeyed_within_the_pass) {
  World world;
  world.options().requests_in_flight_max = 16;
  int asked = 0;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    const bool is_pod = request.verb == Verb::create && request.resource == Resource::pods;
    if (!is_pod || ++asked % 10 != 0) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::unavailable, "too many requests", "pods", 1s}};
  });
  world.start_controller();
  world.create_job("a", 100);
  world.pass(5min);
  EXPECT_EQ(world.pod_names().size(), 100u);
  EXPECT_EQ(world.requests("create pods"), 111) << "100, and one more for each refusal";
  EXPECT_EQ(world.requests("get"), 0) << "nothing was tried twice that had succeeded";
  EXPECT_EQ(world.requests("create services"), 1);
}

TEST(Scale, deletions_obey_a_busy_server_as_well) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("a", 20);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  int refusals_left = 3;
  world.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
    if (request.verb != Verb::remove || refusals_left-- <= 0) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::unavailable, "too many requests", "pods", 1s}};
  });
  const nlohmann::json patch{{"spec", {{"runPolicy", {{"suspend", true}}}}}};
  ASSERT_TRUE(world.objects().patch(Resource::training_jobs, {"default", "a"}, patch).ok());
  world.pass(1min);
  EXPECT_TRUE(world.pod_names().empty());
  EXPECT_EQ(world.requests("delete pods"), 23);
}

TEST(CountsPace, doubles_the_wait_with_each_write_that_only_counts) {
  CountsPace pace;
  SteadyTime now{1h};
  EXPECT_EQ(pace.wait(now), 0ms) << "the first is not kept waiting";
  std::vector<std::chrono::milliseconds> waits;
  for (int write = 0; write < 9; ++write) {
    pace.written(write == 0, now);
    waits.push_back(pace.wait(now));
    now += waits.back();
    EXPECT_EQ(pace.wait(now), 0ms);
  }
  EXPECT_EQ(waits,
            (std::vector<std::chrono::milliseconds>{1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s}));
  pace.written(true, now);
  EXPECT_EQ(pace.wait(now), 1s);
}

TEST(CountsPace, lets_the_pods_of_others_go_first_for_a_while) {
  CountsPace pace;
  const SteadyTime now{1h};
  EXPECT_EQ(pace.wait_beside_creations(now), 0ms) << "nothing has been said of it yet";
  pace.written(true, now);
  EXPECT_EQ(pace.wait_beside_creations(now), CountsPace::kLookAgain);
  EXPECT_EQ(pace.wait_beside_creations(now + 9'900ms), 100ms);
  EXPECT_EQ(pace.wait_beside_creations(now + CountsPace::kBesideCreationsMax), 0ms);
}

TEST(UrgentChange, is_whatever_somebody_waits_for) {
  JobStatus before;
  before.phase = Phase::running;
  before.workers = {.desired = 4, .active = 4};
  before.conditions = {{.type = "Running", .status = true}};
  const auto urgent = [&](auto change) {
    JobStatus after = before;
    change(after);
    return is_urgent_change(before, after);
  };
  EXPECT_FALSE(urgent([](JobStatus& s) { s.workers.ready = 3; }));
  EXPECT_FALSE(urgent([](JobStatus& s) { s.message = "waiting for 1 of 4"; }));
  EXPECT_FALSE(urgent([](JobStatus& s) { s.troubled_ranks = {{.rank = 1}}; }));
  EXPECT_FALSE(urgent([](JobStatus& s) { s.conditions[0].message = "other words"; }));
  EXPECT_FALSE(urgent([](JobStatus& s) { s.workers.active = 1; }));
  EXPECT_TRUE(urgent([](JobStatus& s) { s.workers.active = 0; })) << "a queue waits for the quota";
  EXPECT_TRUE(urgent([](JobStatus& s) { s.phase = Phase::failed; }));
  EXPECT_TRUE(urgent([](JobStatus& s) { s.conditions[0].status = false; }));
  EXPECT_TRUE(urgent([](JobStatus& s) { s.restarts = 1; }));
  EXPECT_TRUE(urgent([](JobStatus& s) { s.excluded_nodes = {"n"}; }));
  EXPECT_TRUE(urgent([](JobStatus& s) { s.observed_generation = 2; }));
}

}  // namespace
}  // namespace tj
