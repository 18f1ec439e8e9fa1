// One container's log through breaks of every kind, with a clock that is turned by hand: each line
// once, and an end only when it is one.
#include "cli/logs/pod_log.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "operator/local/memory_api.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;

const LogTime kStart = *parse_time("2026-11-21T00:00:00Z");
const LogKey kKey{.ns = "default", .pod = "p", .container = "main"};

struct Site {
  Site() { add_pod(); }
  void add_pod() {
    const json pod{{"metadata", {{"name", "p"}}},
                   {"spec", {{"containers", json::array({{{"name", "main"}}})}}}};
    TJ_CHECK(api.objects().create(Resource::pods, "default", pod).ok(), "p");
  }
  void begin(PodLogRequest request = {}) {
    request.ns = "default";
    request.pod = "p";
    log = std::make_unique<PodLog>(
        api, alarm, std::move(request),
        PodLogEvents{
            .on_line = [this](LogTime, std::string_view text) { heard.emplace_back(text); },
            .on_end =
                [this](const Result<void>& how) { end = how.ok() ? "end" : describe(how.error()); },
            .on_problem = [this](const Error& error) { problems.push_back(error.message); }});
    log->resume();
  }
  void say(const std::string& text, std::chrono::nanoseconds at = 0ns) {
    api.logs().append(kKey, {kStart + at, text});
  }
  void settle() {
    while (loop.poll_one() != 0) {}
    loop.restart();
  }
  /// Time passes until nobody waits for it, or that long.
  void pass(std::chrono::milliseconds length) {
    const auto until = now + length;
    settle();
    for (auto next = alarm.next(); next && *next <= until; next = alarm.next()) {
      now = std::max(now, *next);
      alarm.wake();
      settle();
    }
    now = until;
  }
  boost::asio::io_context loop;
  std::chrono::steady_clock::time_point now{1h};
  MemoryApi api{[this](std::function<void()> work) { boost::asio::post(loop, std::move(work)); },
                [] { return TimePoint{}; }};
  Alarm alarm{loop, [this] { return now; }};
  std::unique_ptr<PodLog> log;
  std::vector<std::string> heard;
  std::vector<std::string> problems;
  std::string end;
};
using Lines = std::vector<std::string>;
const Error kBroken{Code::unavailable, "connection reset", "", {}};

TEST(PodLog, what_is_there_is_read_to_its_end) {
  Site site;
  for (const char* text : {"a", "", "b"}) site.say(text);
  site.begin();
  site.settle();
  EXPECT_EQ(site.heard, (Lines{"a", "", "b"}));
  EXPECT_EQ(site.end, "end");
}

TEST(PodLog, a_broken_stream_goes_on_where_it_was) {
  Site site;
  site.say("a", 0ms);
  site.begin({.follow = true});
  site.settle();
  site.api.end_logs(kBroken);
  site.settle();
  site.say("written while nobody was connected", 1ms);
  site.pass(1s);
  site.say("b", 2s);
  site.settle();
  EXPECT_EQ(site.heard, (Lines{"a", "written while nobody was connected", "b"}));
  EXPECT_EQ(site.problems, Lines{"connection reset"});
  EXPECT_EQ(site.end, "");
}

TEST(PodLog, an_orderly_end_is_the_end_only_of_a_container_that_has_ended) {
  Site site;
  site.say("a");
  site.begin({.follow = true});
  site.settle();
  site.api.end_logs({});  // a proxy's
  site.pass(5s);
  EXPECT_EQ(site.end, "");
  site.say("b", 1s);
  site.api.logs().end(kKey);
  site.settle();
  EXPECT_EQ(site.end, "") << "its pod has not said so yet";
  site.log->container_ended();
  site.pass(1s);
  EXPECT_EQ(site.heard, (Lines{"a", "b"}));
  EXPECT_EQ(site.end, "end");
  EXPECT_EQ(site.problems, Lines{});
}

TEST(PodLog, what_was_cut_off_at_the_very_end_is_read_once_more) {
  Site site;
  site.say("a");
  site.begin({.follow = true});
  site.settle();
  site.log->container_ended();
  site.api.end_logs({});  // before the last line came
  site.say("the last words", 1ms);
  site.api.logs().end(kKey);
  site.pass(1s);
  EXPECT_EQ(site.heard, (Lines{"a", "the last words"}));
  EXPECT_EQ(site.end, "end");
}

TEST(PodLog, is_not_taken_from_another_pod_of_its_name) {
  Site site;
  site.say("of the first");
  const json first = *site.api.objects().get(Resource::pods, {"default", "p"});
  site.begin({.uid = first["metadata"]["uid"].get<std::string>(), .follow = true});
  site.settle();
  EXPECT_EQ(site.heard, Lines{"of the first"});
  ASSERT_TRUE(site.api.objects().remove(Resource::pods, {"default", "p"}).ok());
  site.api.logs().forget(kKey);
  site.add_pod();
  site.say("of the second", 1ms);
  site.api.end_logs(kBroken);
  site.pass(5s);
  EXPECT_EQ(site.heard, Lines{"of the first"});
  EXPECT_EQ(site.end, "end");
}

/// More than may wait comes before the pod has been asked for: nothing is lost by that.
TEST(PodLog, a_flood_at_the_beginning_comes_whole) {
  Site site;
  Lines said;
  for (int i = 0; i < 300; ++i) {
    said.push_back(std::to_string(i) + std::string(10'000, 'x'));
    site.say(said.back(), std::chrono::milliseconds{i});
  }
  const json pod = *site.api.objects().get(Resource::pods, {"default", "p"});
  site.begin({.uid = pod["metadata"]["uid"].get<std::string>()});
  site.pass(1min);
  EXPECT_EQ(site.heard, said);
  EXPECT_EQ(site.end, "end");
}

TEST(PodLog, ends_with_its_pod) {
  Site site;
  site.say("a");
  site.begin({.follow = true});
  site.settle();
  site.log->pod_gone();
  site.pass(PodLog::kGoneMax);
  EXPECT_EQ(site.end, "end");
}

TEST(PodLog, a_refusal_is_final_and_a_container_that_is_to_come_is_not) {
  Site site;
  site.begin({.follow = true});
  site.pass(1s);
  EXPECT_EQ(site.end, "") << "waiting to start";
  EXPECT_EQ(site.problems, Lines{});
  site.say("a");
  site.pass(20s);
  EXPECT_EQ(site.heard, Lines{"a"});
  Site refused;
  refused.api.set_watch_fault([](const WatchRequest&) {
    return Error{Code::forbidden, "pods \"p\" is forbidden", "", {}};
  });
  refused.begin({.follow = true});
  refused.pass(1s);
  EXPECT_EQ(refused.end, "pods \"p\" is forbidden");
}

TEST(PodLog, gives_up_what_can_not_be_read_unless_it_is_followed) {
  Site site;
  site.say("a");
  site.api.set_watch_fault([](const WatchRequest&) { return kBroken; });
  site.begin();
  site.pass(10min);
  EXPECT_EQ(site.end, "connection reset");
  EXPECT_EQ(site.problems.size(), static_cast<std::size_t>(PodLog::kTriesMax) - 1);
  Site followed;
  followed.say("a");
  followed.api.set_watch_fault([](const WatchRequest&) { return kBroken; });
  followed.begin({.follow = true});
  followed.pass(10min);
  followed.api.set_watch_fault({});
  followed.pass(PodLog::kRetryMax);
  EXPECT_EQ(followed.heard, Lines{"a"});
}

TEST(PodLog, a_pause_within_a_line_loses_nothing) {
  Site site;
  for (int i = 0; i < 100; ++i) site.say(std::to_string(i), std::chrono::milliseconds{i * 37});
  site.begin();
  Lines expected;
  for (int i = 0; i < 100; ++i) expected.push_back(std::to_string(i));
  for (int turn = 0; turn < 300 && site.end.empty(); ++turn) {
    for (int steps = 0; steps < 7; ++steps) site.loop.poll_one();
    site.loop.restart();
    site.log->pause();
    site.settle();
    site.log->resume();
    if (turn > 20) site.settle();
  }
  EXPECT_EQ(site.heard, expected);
  EXPECT_EQ(site.end, "end");
}

TEST(PodLog, only_the_tail_and_what_is_young_comes_also_after_a_break) {
  Site site;
  for (int i = 0; i < 10; ++i) site.say(std::to_string(i), std::chrono::milliseconds{i});
  site.begin({.follow = true, .tail_lines = 2});
  site.settle();
  site.api.end_logs(kBroken);
  site.pass(1s);
  site.say("new", 20ms);
  site.settle();
  EXPECT_EQ(site.heard, (Lines{"8", "9", "new"}));
  Site since;
  since.say("old", 0s);
  since.say("young", 10s);
  since.begin({.since = kStart + 5s});
  since.settle();
  EXPECT_EQ(since.heard, Lines{"young"});
}

/// Lines, breaks of both kinds, errors at opening and pauses of the clock, by chance.
TEST(PodLog, random_breaks_lose_and_repeat_nothing) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    Site site;
    site.say("begin");
    Lines said{"begin"};
    std::chrono::milliseconds at{0};
    site.begin({.follow = true});
    for (int i = 0; i < 300; ++i) {
      switch (random() % 12) {
        case 0: site.api.end_logs(kBroken); break;
        case 1: site.api.end_logs({}); break;
        case 2: site.pass(std::chrono::milliseconds{random() % 1'500}); break;
        case 3:
          site.api.set_watch_fault(random() % 2 == 0 ? MemoryApi::WatchFaultHook{}
                                                     : [](const WatchRequest&) {
                                                         return std::optional<Error>(kBroken);
                                                       });
          break;
        case 4: site.settle(); break;
        default:
          at += std::chrono::milliseconds{random() % 300};
          said.push_back(std::string(1, static_cast<char>('a' + random() % 2)));
          site.say(said.back(), at);
      }
    }
    site.api.set_watch_fault({});
    site.api.logs().end(kKey);
    site.log->container_ended();
    site.pass(1min);
    ASSERT_EQ(site.heard, said) << "seed " << seed;
    ASSERT_EQ(site.end, "end") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tj
