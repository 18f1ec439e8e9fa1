// The rules of the election, each against answers that a server may give. Times are seconds on our
// monotonic clock; the wall clock is another one, and wrong where a test says so.
#include "operator/loop/lease.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace tj {
namespace {
using nlohmann::json;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

Error error(Code code) { return Error{code, "said the test", "", {}}; }

/// One candidate, and the server's Lease that the test writes by hand.
struct Candidate {
  LeaderLease lease{{.ns = "ops", .name = "l", .identity = "me"}};
  SteadyTime steady{};
  TimePoint wall = *parse_time("2026-11-21T12:00:00Z");
  std::optional<LeaseCommand> command;
  json stored;
  int version = 0;

  Moment now() const { return {steady, wall}; }
  void at(double second) {
    steady = SteadyTime{} + std::chrono::duration_cast<milliseconds>(duration<double>{second});
  }
  bool leads() const { return lease.leads(steady); }

  void start() { command = lease.start(steady); }
  void look(const Result<std::string>& answer) { command = lease.on_look(answer, now()); }
  void look_finds_stored() { look(stored.is_null() ? error(Code::not_found) : found()); }
  void written(const Result<std::string>& answer) { command = lease.on_written(answer, now()); }
  /// The server takes what the command says.
  void write_succeeds() {
    stored = json::parse(write().body);
    touch();
    written(stored.dump());
  }
  void touch() { stored["metadata"]["resourceVersion"] = std::to_string(++version); }
  void waited() { command = lease.on_waited(now()); }

  Result<std::string> found() const { return stored.dump(); }
  void store(const std::string& holder, const std::string& renewed, int transitions = 0) {
    stored = {{"metadata", {{"name", "l"}, {"labels", {{"keep", "this"}}}}},
              {"spec",
               {{"holderIdentity", holder},
                {"leaseDurationSeconds", 15},
                {"acquireTime", "2026-11-21T11:00:00.000000Z"},
                {"renewTime", renewed},
                {"leaseTransitions", transitions}}}};
    touch();
  }
  void lead() {
    start();
    look(error(Code::not_found));
    write_succeeds();
    ASSERT_TRUE(leads());
  }

  bool looks() const { return command == LeaseCommand(LookAtLease{}); }
  bool writes() const { return command && std::holds_alternative<WriteLease>(*command); }
  const WriteLease& write() const { return std::get<WriteLease>(*command); }
  json spec() const { return json::parse(write().body)["spec"]; }
  /// -1: it does not wait.
  double wait_s() const {
    if (!command || !std::holds_alternative<WaitForLease>(*command)) return -1;
    return duration<double>(std::get<WaitForLease>(*command).delay).count();
  }
};

TEST(LeaderLease, where_there_is_none_it_is_created_and_held) {
  Candidate me;
  me.start();
  EXPECT_TRUE(me.looks());
  me.look(error(Code::not_found));
  ASSERT_TRUE(me.writes());
  EXPECT_TRUE(me.write().is_new);
  EXPECT_EQ(json::parse(me.write().body), (json{{"apiVersion", "coordination.k8s.io/v1"},
                                                {"kind", "Lease"},
                                                {"metadata", {{"name", "l"}, {"namespace", "ops"}}},
                                                {"spec",
                                                 {{"holderIdentity", "me"},
                                                  {"leaseDurationSeconds", 15},
                                                  {"acquireTime", "2026-11-21T12:00:00.000000Z"},
                                                  {"renewTime", "2026-11-21T12:00:00.000000Z"},
                                                  {"leaseTransitions", 0}}}}));
  EXPECT_FALSE(me.leads()) << "not before the server has said so";
  me.write_succeeds();
  EXPECT_TRUE(me.leads());
  EXPECT_EQ(me.wait_s(), 2);
}

TEST(LeaderLease, is_renewed_each_retry_period_at_the_version_last_seen) {
  Candidate me;
  me.lead();
  for (int second = 2; second <= 60; second += 2) {
    me.at(second);
    me.wall += milliseconds{2'123};
    me.waited();
    ASSERT_TRUE(me.writes()) << second;
    EXPECT_FALSE(me.write().is_new);
    EXPECT_EQ(json::parse(me.write().body)["metadata"], me.stored["metadata"]);
    EXPECT_EQ(me.spec()["acquireTime"], "2026-11-21T12:00:00.000000Z");
    EXPECT_EQ(me.spec()["leaseTransitions"], 0);
    me.write_succeeds();
    ASSERT_TRUE(me.leads()) << second;
    EXPECT_EQ(me.lease.leads_until(), me.steady + kRenewDeadline);
  }
  EXPECT_EQ(me.stored["spec"]["renewTime"], "2026-11-21T12:01:03.690000Z");
}

/// What a candidate that has waited long enough finds, and what it makes of it.
struct Clock {
  const char* name;
  const char* renewed;  // by the other's wall clock; ours says 12:00
};
class SkewedClocks : public testing::TestWithParam<Clock> {};

TEST_P(SkewedClocks, a_silent_holder_is_followed_after_its_duration_by_our_own_clock) {
  Candidate me;
  me.store("other", GetParam().renewed, 4);
  me.start();
  me.look_finds_stored();
  for (int looks = 0; me.steady < SteadyTime{} + seconds{15}; ++looks) {
    ASSERT_LT(looks, 12);
    ASSERT_FALSE(me.writes()) << "it may be alive";
    ASSERT_GE(me.wait_s(), 0);
    ASSERT_LE(me.wait_s(), 2.4);
    me.steady += std::get<WaitForLease>(*me.command).delay;
    me.waited();
    ASSERT_TRUE(me.looks());
    me.look_finds_stored();
  }
  EXPECT_LE(me.steady, SteadyTime{} + milliseconds{15'400});
  ASSERT_TRUE(me.writes());
  EXPECT_FALSE(me.write().is_new);
  EXPECT_EQ(me.spec()["holderIdentity"], "me");
  EXPECT_EQ(me.spec()["leaseTransitions"], 5);
  EXPECT_EQ(me.spec()["acquireTime"], "2026-11-21T12:00:00.000000Z");
  EXPECT_EQ(json::parse(me.write().body)["metadata"]["labels"]["keep"], "this");
  me.write_succeeds();
  EXPECT_TRUE(me.leads());
}

INSTANTIATE_TEST_SUITE_P(LeaderLease, SkewedClocks,
                         testing::Values(Clock{"same", "2026-11-21T12:00:00.000000Z"},
                                         Clock{"an_hour_behind", "2026-11-21T11:00:00.000000Z"},
                                         Clock{"a_year_ahead", "2027-11-21T12:00:00.000000Z"},
                                         Clock{"unreadable", "yesterday"}),
                         [](const auto& test) { return test.param.name; });

TEST(LeaderLease, a_holder_that_renews_is_never_followed_whatever_its_clock_says) {
  Candidate me;
  me.store("other", "2020-01-01T00:00:00.000000Z");
  me.start();
  for (int second = 0; second < 120; second += 2) {
    me.at(second);
    me.stored["spec"]["renewTime"] = "2020-01-01T00:00:00." + std::to_string(100000 + second) + "Z";
    me.touch();
    me.look_finds_stored();
    ASSERT_GT(me.wait_s(), 0) << second;
    me.waited();
  }
  EXPECT_EQ(me.lease.holder(), "other");
}

TEST(LeaderLease, a_change_of_its_labels_is_no_sign_of_life) {
  Candidate me;
  me.store("other", "2026-11-21T12:00:00.000000Z");
  me.start();
  me.look_finds_stored();
  me.at(15);
  me.waited();
  me.touch();
  me.look_finds_stored();
  EXPECT_TRUE(me.writes());
}

TEST(LeaderLease, the_duration_that_the_holder_wrote_is_granted_within_bounds) {
  const auto free_after = [](const json& written, double second) {
    Candidate me;
    me.store("other", "");
    me.stored["spec"]["leaseDurationSeconds"] = written;
    me.start();
    me.look_finds_stored();
    me.at(second);
    me.waited();
    me.look_finds_stored();
    return me.writes();
  };
  EXPECT_FALSE(free_after(60, 59));
  EXPECT_TRUE(free_after(60, 60));
  EXPECT_FALSE(free_after(1'000'000, 299));
  EXPECT_TRUE(free_after(1'000'000, 300));
  EXPECT_FALSE(free_after(-5, 0.9));
  EXPECT_TRUE(free_after(nullptr, 1));
}

TEST(LeaderLease, one_that_was_given_back_is_taken_at_once) {
  Candidate me;
  me.store("", "2026-11-21T12:00:00.000000Z", 7);
  me.start();
  me.look_finds_stored();
  ASSERT_TRUE(me.writes());
  EXPECT_EQ(me.spec()["leaseTransitions"], 8);
}

TEST(LeaderLease, who_comes_second_looks_again_and_waits) {
  for (const bool is_new : {true, false}) {
    Candidate me;
    if (!is_new) me.store("", "2026-11-21T12:00:00.000000Z");
    me.start();
    me.look_finds_stored();
    ASSERT_TRUE(me.writes());
    me.store("other", "2026-11-21T12:00:01.000000Z");
    me.written(error(Code::conflict));
    EXPECT_TRUE(me.looks());
    me.look_finds_stored();
    EXPECT_GT(me.wait_s(), 0);
    EXPECT_FALSE(me.leads());
  }
}

TEST(LeaderLease, a_lost_answer_to_the_first_write_is_cleared_up_by_a_look) {
  Candidate me;
  me.start();
  me.look(error(Code::not_found));
  me.stored = json::parse(me.write().body);  // it took effect
  me.touch();
  me.at(5);
  me.written(error(Code::timeout));
  EXPECT_FALSE(me.leads());
  EXPECT_LE(me.wait_s(), 0.4) << "five seconds were lost already";
  me.waited();
  ASSERT_TRUE(me.looks());
  me.look_finds_stored();
  EXPECT_FALSE(me.leads()) << "the record may be about to expire for others";
  ASSERT_TRUE(me.writes());
  EXPECT_EQ(me.spec()["leaseTransitions"], 0) << "it is ours";
  me.write_succeeds();
  EXPECT_TRUE(me.leads());
}

TEST(LeaderLease, a_lost_answer_to_a_renewal_does_not_cost_the_lease) {
  for (const bool took_effect : {true, false}) {
    Candidate me;
    me.lead();
    me.at(2);
    me.waited();
    if (took_effect) me.stored = json::parse(me.write().body), me.touch();
    me.at(7);
    me.written(error(Code::timeout));
    EXPECT_EQ(me.wait_s(), 0);
    me.waited();
    ASSERT_TRUE(me.looks());
    me.look_finds_stored();
    EXPECT_EQ(me.lease.leads_until(), SteadyTime{} + seconds{10}) << "a look renews nothing";
    ASSERT_TRUE(me.writes());
    me.write_succeeds();
    EXPECT_EQ(me.lease.leads_until(), SteadyTime{} + seconds{17});
  }
}

TEST(LeaderLease, the_deadline_counts_from_when_a_write_was_sent) {
  Candidate me;
  me.lead();
  me.at(2);
  me.waited();
  me.at(6);
  me.write_succeeds();
  EXPECT_EQ(me.lease.leads_until(), SteadyTime{} + seconds{12});
  EXPECT_EQ(me.wait_s(), 0) << "the next renewal is due";
}

TEST(LeaderLease, ends_for_good_at_the_renew_deadline_and_says_why) {
  Candidate me;
  me.lead();
  for (double second = 2; second < 10; second += 2) {
    me.at(second);
    me.waited();
    ASSERT_TRUE(me.writes() || me.looks());
    if (me.writes())
      me.written(error(Code::unavailable));
    else
      me.look(error(Code::unavailable));
    ASSERT_EQ(me.wait_s(), 2) << "no faster because it fails";
    EXPECT_TRUE(me.leads());
  }
  me.at(10);
  EXPECT_FALSE(me.leads());
  me.lease.check(me.steady);
  ASSERT_TRUE(me.lease.lost_reason());
  EXPECT_EQ(*me.lease.lost_reason(),
            "it could not be renewed within 10 s: " + describe(error(Code::unavailable)));
  me.waited();
  EXPECT_FALSE(me.command) << "nothing is tried any more";
}

TEST(LeaderLease, an_answer_that_comes_after_the_deadline_is_too_late) {
  Candidate me;
  me.lead();
  me.at(2);
  me.waited();
  me.at(10);  // the process was stopped meanwhile
  me.write_succeeds();
  EXPECT_FALSE(me.command);
  EXPECT_FALSE(me.leads());
  EXPECT_TRUE(me.lease.lost_reason());
}

TEST(LeaderLease, a_first_write_that_took_too_long_is_not_believed) {
  Candidate me;
  me.start();
  me.look(error(Code::not_found));
  me.at(10);
  me.write_succeeds();
  EXPECT_FALSE(me.leads());
  EXPECT_FALSE(me.lease.lost_reason()) << "we never led";
  EXPECT_TRUE(me.looks());
}

TEST(LeaderLease, a_stolen_lease_ends_it_at_once) {
  Candidate me;
  me.lead();
  me.at(2);
  me.waited();
  me.store("thief", "2026-11-21T12:00:01.000000Z");
  me.written(error(Code::conflict));
  ASSERT_TRUE(me.looks());
  me.look_finds_stored();
  EXPECT_FALSE(me.command);
  EXPECT_FALSE(me.leads());
  EXPECT_EQ(me.lease.lost_reason(), "\"thief\" has taken it");
}

TEST(LeaderLease, a_conflict_that_is_no_theft_costs_nothing_and_does_not_spin) {
  Candidate me;
  me.lead();
  int writes = 0;
  for (double second = 2; second < 9; second += 2) {
    me.at(second);
    me.waited();
    if (!me.writes()) continue;
    ++writes;
    me.touch();  // somebody set a label
    me.written(error(Code::conflict));
    ASSERT_TRUE(me.looks());
    me.look_finds_stored();
    ASSERT_EQ(me.wait_s(), 2);
    EXPECT_TRUE(me.leads());
  }
  EXPECT_EQ(writes, 4);
  me.waited();
  me.write_succeeds();
  EXPECT_TRUE(me.leads());
}

TEST(LeaderLease, one_that_was_deleted_is_made_anew_by_its_leader) {
  Candidate me;
  me.lead();
  me.at(2);
  me.waited();
  me.stored = nullptr;
  me.written(error(Code::not_found));
  ASSERT_TRUE(me.looks());
  me.look_finds_stored();
  EXPECT_TRUE(me.leads());
  me.at(4);
  me.waited();
  ASSERT_TRUE(me.writes());
  EXPECT_TRUE(me.write().is_new);
  me.write_succeeds();
  EXPECT_TRUE(me.leads());
}

TEST(LeaderLease, what_is_no_lease_is_looked_at_again_and_never_acted_on) {
  for (const char* answer : {"", "{", "[]", "{}", R"({"metadata":{"resourceVersion":7}})"}) {
    Candidate me;
    me.start();
    me.look(std::string(answer));
    EXPECT_GE(me.wait_s(), 2) << answer;
    me.waited();
    EXPECT_TRUE(me.looks()) << answer;
  }
}

TEST(LeaderLease, giving_it_back_names_nobody_and_only_its_leader_can) {
  Candidate me;
  me.start();
  EXPECT_FALSE(me.lease.release(me.now()));
  Candidate leader;
  leader.lead();
  leader.at(1);
  leader.command = leader.lease.release(leader.now());
  ASSERT_TRUE(leader.writes());
  EXPECT_EQ(leader.spec()["holderIdentity"], "");
  EXPECT_EQ(leader.spec()["leaseDurationSeconds"], 1);
  EXPECT_EQ(json::parse(leader.write().body)["metadata"]["resourceVersion"], "1");
  EXPECT_FALSE(leader.leads()) << "from the moment on when it is written";
  Candidate late;
  late.lead();
  late.at(10);
  EXPECT_FALSE(late.lease.release(late.now())) << "it may be another's by now";
}

TEST(LeaderLease, followers_spread_their_looks) {
  std::set<double> waits;
  for (int i = 0; i < 20; ++i) {
    Candidate me;
    me.lease = LeaderLease({.ns = "ops", .name = "l", .identity = "pod-" + std::to_string(i)});
    me.store("other", "");
    me.start();
    me.look_finds_stored();
    waits.insert(me.wait_s());
  }
  EXPECT_GT(waits.size(), 10u);
  EXPECT_GE(*waits.begin(), 2);
  EXPECT_LE(*waits.rbegin(), 2.4);
}

}  // namespace
}  // namespace tj
