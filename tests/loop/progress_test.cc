// What becomes of what rank 0 says: in the status, in time, and once it stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/loop/progress_poller.h"
#include "operator/loop/status_pace.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kJobPatch = "patch trainingjobs";

Progress at_step(long long step, long long steps = 1000) {
  Progress document;
  document.phase = "step";
  document.step = step;
  document.steps = steps;
  return document;
}

Progress standing_still(int rank, double seconds) {
  Progress document = at_step(120);
  document.heartbeat_age_seconds = seconds;
  document.stalled.push_back({rank, "n", "step", seconds});
  return document;
}

/// A job `a` whose workers run, and an operator that asks.
struct Site : World {
  explicit Site(int worker_count = 2, json spec = json::object()) {
    set_kubelet(Kubelet::starts_pods);
    options().progress = &progress();
    start_controller();
    create_job("a", worker_count, std::move(spec));
    pass(1s);
  }
  json status() { return job("a")["status"]; }
  std::string text() { return status()["progress"].value("text", ""); }
};

json with_heartbeat(int seconds) { return {{"runPolicy", {{"heartbeatTimeoutSeconds", seconds}}}}; }

TEST(Progress, is_in_the_status_soon_and_written_seldom) {
  Site site;
  long long step = 0;
  site.progress().answer("a", [&] { return PollAnswer{PollResult::read, at_step(++step)}; });
  site.pass(15s);
  EXPECT_THAT(site.text(), EndsWith("/1000 (0%)"));
  EXPECT_EQ(site.progress().last_target.port, 29600);
  const int before = site.requests(kJobPatch);
  site.pass(10min);
  EXPECT_GE(site.requests(kJobPatch) - before, 45);
  EXPECT_LE(site.requests(kJobPatch) - before, 60);
  EXPECT_GE(site.status()["progress"]["step"], 45);
  EXPECT_EQ(site.status()["phase"], "Running");
}

TEST(Progress, at_rest_writes_nothing) {
  Site site;
  site.progress().answer("a", [wobble = 0.0]() mutable {
    PollAnswer answer{PollResult::read, at_step(5)};
    answer.document.eta_seconds = wobble += 17;
    answer.document.tokens_per_second = wobble;
    return answer;
  });
  site.pass(1min);
  const int before = site.writes();
  site.pass(1h);
  EXPECT_EQ(site.writes(), before);
  EXPECT_GT(site.progress().asked, 300);
}

TEST(Progress, of_an_image_that_says_nothing_is_asked_for_seldom_and_costs_no_write) {
  Site site;
  const int before = site.writes();
  site.pass(1h);
  EXPECT_EQ(site.writes(), before);
  EXPECT_LE(site.progress().asked, 20);
}

TEST(Progress, shows_the_last_checkpoint_and_stays_when_the_job_has_ended) {
  Site site;
  Progress document = at_step(1000);
  document.phase = "end";
  document.loss = 3.123456789;
  document.last_checkpoint = SavedStep{1000, "/out/step-1000"};
  site.progress().say("a", document);
  site.pass(15s);
  site.end_pod("a-worker-0", 0);
  site.end_pod("a-worker-1", 0);
  site.pass(1min);
  EXPECT_EQ(site.phase("a"), "Succeeded");
  EXPECT_EQ(site.text(), "1000/1000 (100%)");
  EXPECT_EQ(site.status()["progress"]["loss"], 3.12346);
  EXPECT_EQ(site.status()["lastCheckpoint"]["path"], "/out/step-1000");
  EXPECT_EQ(site.status()["lastCheckpoint"]["step"], 1000);
  const int asked = site.progress().asked;
  site.pass(1h);
  EXPECT_EQ(site.progress().asked, asked);
}

TEST(Progress, of_many_jobs_is_written_in_turn) {
  constexpr int kJobs = 30;
  Site site(1);
  long long step = 0;
  for (int i = 0; i < kJobs; ++i) {
    const std::string name = "j" + std::to_string(i);
    site.create_job(name, 1);
    site.progress().answer(name, [&] { return PollAnswer{PollResult::read, at_step(++step)}; });
  }
  site.pass(15s);  // the first of each is written at once
  const int before = site.requests(kJobPatch);
  int most = 0;
  for (int second = 0; second < 25; ++second) {
    const int so_far = site.requests(kJobPatch);
    site.pass(1s);
    most = std::max(most, site.requests(kJobPatch) - so_far);
  }
  EXPECT_LE(most, 1s / StatusPace::kTurn + 1);
  EXPECT_GE(site.requests(kJobPatch) - before, 2 * kJobs);
}

TEST(Progress, delays_nothing_else) {
  Site site;
  long long step = 0;
  site.progress().answer("a", [&] { return PollAnswer{PollResult::read, at_step(++step)}; });
  site.pass(15s);
  site.end_pod("a-worker-1", 3);
  site.settle();
  EXPECT_EQ(site.status()["restarts"], 1);
}

TEST(Progress, is_asked_for_by_the_leader_alone) {
  Site site;
  site.pass(15s);
  const json held{{"holderIdentity", "another"},
                  {"leaseDurationSeconds", 15},
                  {"acquireTime", "2026-11-21T00:00:00.000000Z"},
                  {"renewTime", "2026-11-21T00:00:00.000000Z"}};
  const json lease{{"metadata", {{"name", "op"}, {"namespace", "default"}}}, {"spec", held}};
  ASSERT_TRUE(site.objects().create(Resource::leases, "default", lease).ok());
  site.options().lease = LeaseTarget{.ns = "default", .name = "op", .identity = "follower"};
  site.options().on_lease_lost = [](const std::string&) {};
  site.restart_controller();
  const int asked = site.progress().asked;
  site.pass(14s);
  EXPECT_EQ(site.progress().asked, asked);
  site.pass(1min);
  EXPECT_GT(site.progress().asked, asked) << "the other one never renewed it";
}

TEST(Hang, is_named_and_restarts_the_gang) {
  Site site(4, with_heartbeat(60));
  double age = 0;
  site.progress().answer("a", [&] {
    return PollAnswer{PollResult::read, standing_still(3, age += 10)};
  });
  ASSERT_TRUE(site.pass_until([&] { return site.status()["restarts"] == 1; }));
  EXPECT_THAT(site.event_reasons(), Contains("Hung"));
  const json failure = site.status()["firstFailure"];
  EXPECT_EQ(failure["cause"], "Hung");
  EXPECT_EQ(failure["rank"], 3);
  EXPECT_EQ(failure["step"], 120);
  EXPECT_THAT(failure["message"], HasSubstr("worker 3 has not moved for"));
  EXPECT_THAT(site.metrics().text(), HasSubstr("trainingjob_restarts_total{cause=\"Hung\"} 1"));
  site.progress().say("a", at_step(121));
  ASSERT_TRUE(site.pass_until([&] { return site.phase("a") == "Running"; }));
  site.pass(10min);
  EXPECT_EQ(site.status()["restarts"], 1);
  EXPECT_EQ(site.status()["restartsCounted"], 1);
}

TEST(Hang, of_rank_0_itself_shows_by_its_silence) {
  Site site(2, with_heartbeat(60));
  site.progress().say("a", at_step(7));
  site.pass(70s);
  site.progress().fail("a", PollResult::no_answer);
  site.pass(55s);
  EXPECT_EQ(site.phase("a"), "Running");
  ASSERT_TRUE(site.pass_until([&] { return site.status()["restarts"] == 1; }, 60s));
  EXPECT_EQ(site.status()["firstFailure"]["rank"], 0);
  EXPECT_THAT(site.status()["firstFailure"]["message"],
              HasSubstr("has not said how it is doing for"));
}

/// That it was read stands in the status; since when it can't be any more begins anew.
TEST(Hang, is_found_by_another_operator_too) {
  Site site(2, with_heartbeat(60));
  site.progress().say("a", at_step(7));
  site.pass(70s);
  site.progress().fail("a", PollResult::refused);
  site.pass(50s);
  site.restart_controller();
  site.pass(50s);
  EXPECT_EQ(site.status()["restarts"], 0) << "one silence of 50 s after another";
  site.pass(50s);
  EXPECT_EQ(site.status()["restarts"], 1);
}

TEST(Hang, verdict_is_carried_out_wherever_the_operator_dies) {
  for (int index = 0; index < 12; ++index) {
    Site site(2, with_heartbeat(60));
    site.progress().answer("a", [&] {
      const bool is_first = site.status().value("restarts", 0) == 0;
      return PollAnswer{PollResult::read, is_first ? standing_still(1, 100) : at_step(200)};
    });
    int writes = 0;
    site.api().set_request_fault([&](const Request& request) -> std::optional<RequestFault> {
      const bool is_write = request.verb != Verb::list && request.verb != Verb::get;
      if (is_write && writes++ == index) site.restart_soon();
      return std::nullopt;
    });
    site.pass(10min);
    EXPECT_EQ(site.phase("a"), "Running") << index;
    EXPECT_EQ(site.status()["restarts"], 1) << index;
    EXPECT_EQ(site.status()["attempt"], 1) << index;
  }
}

TEST(Hang, is_not_concluded_from_a_network_that_is_cut) {
  Site site(2, with_heartbeat(60));
  site.progress().say("a", at_step(7));
  site.pass(70s);
  site.progress().fail("a", PollResult::unreachable);
  site.pass(1h);
  EXPECT_EQ(site.status()["restarts"], 0);
}

TEST(Hang, is_not_concluded_from_the_operators_own_sleep) {
  Site site(2, with_heartbeat(60));
  site.progress().say("a", at_step(7));
  site.pass(70s);
  site.oversleep(1h);
  site.pass(5min);
  EXPECT_EQ(site.status()["restarts"], 0);
}

TEST(Hang, is_not_looked_for_without_a_limit) {
  Site site;
  site.progress().say("a", standing_still(1, 10'000));
  site.pass(10min);
  site.progress().fail("a", PollResult::no_answer);
  site.pass(1h);
  EXPECT_EQ(site.status()["restarts"], 0);
}

TEST(Hang, of_a_job_that_never_comes_further_ends_it) {
  Site site(2, with_heartbeat(60));
  site.progress().say("a", standing_still(1, 100));
  ASSERT_TRUE(site.pass_until([&] { return site.phase("a") == "Failed"; }, 1h));
  EXPECT_EQ(site.reason("a"), "RestartsExhausted");
  EXPECT_EQ(site.status()["restartsCounted"], 3);
}

TEST(Hang, budget_comes_back_with_progress) {
  Site site(2, with_heartbeat(60));
  site.progress().answer("a", [&] {
    Progress document = standing_still(1, 100);
    document.step = 100 * (1 + site.status().value("attempt", 0));
    return PollAnswer{PollResult::read, document};
  });
  ASSERT_TRUE(site.pass_until([&] { return site.status()["restarts"] == 6; }, 2h));
  EXPECT_EQ(site.status()["restartsCounted"], 1);
  EXPECT_EQ(site.status()["restartStep"], 600);
}

}  // namespace
}  // namespace tj
