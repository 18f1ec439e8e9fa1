// A restart that waits, in the whole operator: nothing is written meanwhile, and an operator that
// starts anew keeps to the moment that stands in the status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loop/world.h"

namespace tj {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// A job of two workers whose first attempt has just failed; the next one begins in 10 s.
class BackoffSite : public World {
 public:
  BackoffSite() {
    set_kubelet(Kubelet::starts_pods);
    start_controller();
    create_job("a", 2, {{"runPolicy", {{"restartBackoffSeconds", 10}}}});
    settle();
    end_pod("a-worker-1", 1);
    settle();
  }
  json status() { return job("a")["status"]; }
};

TEST(BackoffInTheLoop, holds_the_next_attempt_and_writes_nothing_meanwhile) {
  BackoffSite site;
  EXPECT_EQ(site.phase("a"), "Restarting");
  EXPECT_THAT(site.status()["message"].get<std::string>(),
              testing::HasSubstr("attempt 1 begins in 10 s, at 01:00:10Z"));
  EXPECT_THAT(site.pod_names(), testing::IsEmpty()) << "its pods are gone";
  site.pass(2s);  // counts that have moved are written by then
  const int writes = site.writes();
  site.pass(7500ms);
  EXPECT_EQ(site.writes(), writes);
  EXPECT_THAT(site.pod_names(), testing::IsEmpty());
  site.pass(500ms);
  EXPECT_EQ(site.phase("a"), "Running");
  EXPECT_EQ(site.status()["attempt"], 1);
}

TEST(BackoffInTheLoop, is_as_long_when_the_operator_starts_anew) {
  BackoffSite site;
  site.pass(4s);
  site.restart_controller();
  site.pass(5900ms);
  EXPECT_THAT(site.pod_names(), testing::IsEmpty());
  site.pass(100ms);
  EXPECT_EQ(site.phase("a"), "Running");
}

TEST(BackoffInTheLoop, is_over_when_the_operator_was_away_for_longer) {
  BackoffSite site;
  site.stop_controller();
  site.oversleep(1min);
  site.start_controller();
  site.settle();
  EXPECT_EQ(site.phase("a"), "Running");
}

}  // namespace
}  // namespace tj
