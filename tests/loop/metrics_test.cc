#include "operator/loop/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/plan/reason.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, say_what_was_counted) {
  Metrics metrics;
  metrics.count_request(Verb::create, Resource::pods, "201");
  metrics.count_request(Verb::create, Resource::pods, "201");
  metrics.count_watch_restart(Resource::services, "gone");
  metrics.observe_reconcile(20ms);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("# TYPE trainingjob_api_requests_total counter"));
  EXPECT_THAT(text, HasSubstr("trainingjob_api_requests_total{code=\"201\",resource=\"pods\","
                              "verb=\"create\"} 2"));
  EXPECT_THAT(text, HasSubstr("trainingjob_watch_restarts_total{reason=\"gone\","
                              "resource=\"services\"} 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_reconcile_seconds_bucket{le=\"0.1\"} 1"));
}

TEST(Metrics, tell_restarts_and_starts_from_the_statuses_that_were_written) {
  Metrics metrics;
  const TimePoint start{1'000s};
  JobStatus waiting{.phase = Phase::starting, .attempt_start_time = start, .start_time = start};
  JobStatus running = waiting;
  running.running_time = start + 7s;
  metrics.count_status(waiting, running);
  metrics.count_status(running, running);
  JobStatus restarting = running;
  restarting.restarts = 1;
  restarting.running_time.reset();
  restarting.attempt_start_time = start + 60s;
  restarting.first_failure = FirstFailure{.cause = FailureCause::oom_killed};
  metrics.count_status(running, restarting);
  JobStatus again = restarting;
  again.running_time = start + 90s;
  metrics.count_status(restarting, again);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("trainingjob_time_to_all_running_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_time_to_all_running_seconds_sum 7"));
  EXPECT_THAT(text, HasSubstr("trainingjob_restarts_total{cause=\"OOMKilled\"} 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_restarts_total{cause=\"NodeLost\"} 0"));
  EXPECT_THAT(text, HasSubstr("trainingjob_restart_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_restart_seconds_sum 30"));
}

TEST(Metrics, tell_what_ended_a_job_that_failed) {
  Metrics metrics;
  JobStatus running{.phase = Phase::running, .attempt = 2};
  running.first_failure = FirstFailure{.attempt = 1, .cause = FailureCause::oom_killed};
  JobStatus hung = running;
  hung.phase = Phase::failed;
  hung.reason = reason::kRestartsExhausted;
  hung.first_failure = FirstFailure{.attempt = 2, .cause = FailureCause::hung};
  metrics.count_status(running, hung);
  metrics.count_status(hung, hung);
  JobStatus late = running;  // what failed before was mended by a restart
  late.phase = Phase::failed;
  late.reason = reason::kDeadlineExceeded;
  metrics.count_status(running, late);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("trainingjob_failures_total{cause=\"Hung\"} 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_failures_total{cause=\"DeadlineExceeded\"} 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_failures_total{cause=\"OOMKilled\"} 0"));
}

TEST(Metrics, count_the_pods_that_do_not_end) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.add_node("n0");
  world.start_controller();
  world.create_job("a", 1, {{"nodeLoss", {{"forceDeleteSeconds", 3600}}}});
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.place_pod("a-worker-0", "n0");
  world.silence_node("n0");
  world.pass(5min);
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_stuck_terminating 0"));
  world.pass(5min);
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_stuck_terminating 1"));
}

TEST(Metrics, of_a_controller_follow_its_jobs_without_naming_them) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.start_controller();
  world.create_job("some-job", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("some-job") == "Running"; }));
  const std::string text = world.metrics().text();
  EXPECT_THAT(text, HasSubstr("trainingjob_jobs{phase=\"Running\"} 1"));
  EXPECT_THAT(text, HasSubstr("trainingjob_jobs{phase=\"Pending\"} 0"));
  EXPECT_THAT(text, HasSubstr("trainingjob_cache_objects{resource=\"pods\"} 2"));
  EXPECT_THAT(text, HasSubstr("trainingjob_queue_depth 0"));
  EXPECT_THAT(text, Not(HasSubstr("some-job")));
  world.stop_controller();
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_queue_depth")) << "still answers";
}

TEST(Metrics, count_the_lists_that_had_to_start_over) {
  World world;
  world.start_controller();
  world.settle();
  world.create_job("a", 1);
  world.objects().compact();
  world.api().end_watches(Error{Code::gone, "too old resource version", "", {}});
  world.pass(10s);
  EXPECT_THAT(world.metrics().text(), HasSubstr("trainingjob_watch_restarts_total{reason=\"gone\","
                                                "resource=\"pods\"} 1"));
}

}  // namespace
}  // namespace tj
