// What the events of a silent pod say reaches the job's status.
#include "operator/loop/pod_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json event_about(const json& pod, const char* type, const char* time, const char* message) {
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"generateName", "event-"}, {"namespace", "default"}}},
          {"involvedObject",
           {{"kind", "Pod"}, {"name", pod["metadata"]["name"]}, {"uid", pod["metadata"]["uid"]}}},
          {"type", type},
          {"reason", "FailedMount"},
          {"message", message},
          {"lastTimestamp", time}};
}

const json kPod{{"metadata", {{"name", "a-worker-0"}, {"uid", "u"}}}};

TEST(PodNews, are_the_newest_warning_about_this_very_pod) {
  json other = kPod;
  other["metadata"]["uid"] = "another";
  const json list{{"items",
                   {event_about(kPod, "Warning", "2026-11-21T00:00:01Z", "old"),
                    event_about(kPod, "Warning", "2026-11-21T00:00:03Z", "new"),
                    event_about(kPod, "Warning", "2026-11-21T00:00:02Z", "middle"),
                    event_about(kPod, "Normal", "2026-11-21T00:00:04Z", "normal"),
                    event_about(other, "Warning", "2026-11-21T00:00:05Z", "of its predecessor")}}};
  const auto news = newest_warning(list.dump(), "u");
  ASSERT_TRUE(news);
  EXPECT_EQ(news->message, "new");
  EXPECT_EQ(news->reason, "FailedMount");
}

TEST(PodNews, of_what_is_no_list_are_none) {
  for (const char* text : {"", "[]", "{}", "{\"items\": 1}", "{\"items\": [1, null, {}]}"}) {
    EXPECT_FALSE(newest_warning(text, "u")) << text;
  }
}

/// A pod that is bound to a node and says nothing more.
void start_silent_job(World& world) {
  world.start_controller();
  world.create_job("a", 1);
  world.settle();
  world.place_pod("a-worker-0", "n0");
  world.pass(1s);
}

TEST(PodNews, say_in_the_status_what_a_silent_pod_waits_for) {
  World world;
  start_silent_job(world);
  const json pod = world.get(Resource::pods, "a-worker-0");
  const json event =
      event_about(pod, "Warning", "2026-11-21T00:00:00Z", "MountVolume.SetUp failed: no secret x");
  ASSERT_TRUE(world.objects().create(Resource::events, "default", event).ok());
  world.pass(10min);
  EXPECT_THAT(world.job("a")["status"]["message"].get<std::string>(), HasSubstr("no secret x"));
  EXPECT_LE(world.requests("list events"), 21) << "each 30 seconds";
  EXPECT_GE(world.requests("list events"), 10) << "as long as it lasts";
}

TEST(PodNews, are_not_needed) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    const bool is_ask = request.resource == Resource::events && request.verb == Verb::list;
    if (!is_ask) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "events is forbidden", "events", {}}};
  });
  start_silent_job(world);
  world.pass(5min);
  EXPECT_EQ(world.phase("a"), "Starting");
  EXPECT_THAT(world.job("a")["status"].dump(), Not(HasSubstr("forbidden")));
  world.start_pod("a-worker-0");
  world.settle();
  EXPECT_EQ(world.phase("a"), "Running");
}

}  // namespace
}  // namespace tj
