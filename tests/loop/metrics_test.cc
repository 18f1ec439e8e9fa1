#include "operator/loop/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
