// What a job costs the API server, and that it does not grow faster than the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/loop/reconciler.h"
#include "operator/loop/status_pace.h"
#include "tests/loop/world.h"
#include "tests/sanitized.h"

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
  const int workers = kIsSanitized ? 100 : 200;
  const Cost large = cost_of_start(workers);
  EXPECT_EQ(small.creates, 11);
  EXPECT_EQ(large.creates, workers + 1);
  EXPECT_NEAR(large.status_writes, small.status_writes, 1);
  EXPECT_LE(large.status_writes, 6) << "its phases, and a count at 4, 12, 28 seconds";
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
  world.pass(StatusPace::kBehindCreationsMax - 1s);
  EXPECT_EQ(world.pod_names().size(), 10u);
  EXPECT_EQ(world.phase("a"), "") << "what its pods are made from stands in its Service";
  EXPECT_EQ(world.requests("patch trainingjobs"), 0);
  world.pass(1s);
  EXPECT_EQ(world.phase("a"), "Starting") << "it does not wait for ever";
  for (int rank = 0; rank < 8; ++rank) world.start_pod("a-worker-" + std::to_string(rank));
  world.pass(StatusPace::kBehindCreationsMax);
  EXPECT_EQ(world.phase("a"), "Running");
  world.end_pod("a-worker-3", 1);
  world.settle();
  EXPECT_EQ(world.job("a")["status"]["attempt"], 1) << "a verdict does not wait";
  world.api().release_answers();
  world.pass(StatusPace::kBehindCreationsMax + 1s);
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
  const int waits = passes(world) - before - 1;  // from one decision to the next
  EXPECT_LE(waits * Reconciler::kDecisionShare * 1ms, taken)
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

}  // namespace
}  // namespace tj
