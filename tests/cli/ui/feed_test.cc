// A feed of a cluster over the API server in memory: what comes and goes there is on the board.
#include "cli/ui/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/ui/loop_until.h"

namespace tj::ui {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

const ObjectKey kJob{"default", "mnist"};

struct World {
  boost::asio::io_context loop;
  MemoryApi api{[this](std::function<void()> work) { boost::asio::post(loop, std::move(work)); },
                wall_clock};
  Board board;
  int events_created = 0;
  std::unique_ptr<Feed> feed = cluster_feed(loop, api, board, "default", "a cluster");

  json create(Resource resource, json object, const std::string& ns = "default") {
    auto stored = api.objects().create(resource, ns, std::move(object));
    TJ_CHECK(stored.ok(), describe(stored.error()));
    return *stored;
  }
  json create_job(const std::string& name, const std::string& ns = "default") {
    const json job = {
        {"apiVersion", "kubebrain.io/v1"},
        {"kind", "TrainingJob"},
        {"metadata", {{"name", name}}},
        {"spec",
         {{"replicaSpecs",
           {{"Worker",
             {{"template", {{"spec", {{"containers", {{{"name", "m"}, {"image", "i"}}}}}}}}}}}}}}};
    return create(Resource::training_jobs, job, ns);
  }
  void create_pod(int rank) {
    create(Resource::pods, {{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata",
                             {{"name", names::worker_pod("mnist", rank)},
                              {"labels",
                               {{names::kLabelTrainingJob, "mnist"},
                                {names::kLabelWorkerIndex, std::to_string(rank)},
                                {names::kLabelAttempt, "0"}}}}},
                            {"spec", {{"containers", {{{"name", "m"}, {"image", "i"}}}}}}});
  }
  void create_event(const std::string& kind, const std::string& object, const std::string& reason) {
    create(Resource::events,
           {{"apiVersion", "v1"},
            {"kind", "Event"},
            {"metadata", {{"name", object + "." + std::to_string(++events_created)}}},
            {"involvedObject", {{"kind", kind}, {"namespace", "default"}, {"name", object}}},
            {"reason", reason}});
  }
  template <typename Condition>
  bool until(Condition condition) {
    return loop_until(loop, condition);
  }
  json job() const { return board.job_document(kJob, {}).value_or(json()); }
};

TEST(ClusterFeed, shows_what_is_there_and_what_comes_and_goes) {
  World world;
  world.create_job("mnist");
  world.create_job("elsewhere", "other");
  world.create_pod(0);
  world.feed->start();
  ASSERT_TRUE(world.until([&] { return world.board.find(kJob) != nullptr; }));
  ASSERT_TRUE(world.until([&] { return world.job()["ranks"]["rows"][0]["lives"].size() == 1; }))
      << "the pod is listed after its job";
  world.create_pod(1);
  EXPECT_TRUE(world.until([&] { return world.job()["ranks"]["total"] == 2; }));
  EXPECT_EQ(world.board.jobs().size(), 1U) << "of this namespace only";
  ASSERT_TRUE(world.api.objects().remove(Resource::training_jobs, kJob).ok());
  EXPECT_TRUE(world.until([&] { return world.board.find(kJob) == nullptr; }));
  EXPECT_EQ(world.feed->problem(), "");
}

TEST(ClusterFeed, lists_events_of_the_job_that_is_looked_at_and_of_its_pods) {
  World world;
  world.create_job("mnist");
  world.create_event("TrainingJob", "mnist", "WorkersRunning");
  world.create_event("Pod", "mnist-worker-0", "Pulled");
  world.create_event("Pod", "another-worker-0", "Killing");
  world.feed->start();
  ASSERT_TRUE(world.until([&] { return world.board.find(kJob) != nullptr; }));
  EXPECT_TRUE(world.job()["events"].empty()) << "nobody has looked";
  world.feed->look_at(kJob);
  EXPECT_TRUE(world.until([&] { return world.job()["events"].size() == 2; }));
  EXPECT_THAT(world.job()["events"].dump(), testing::Not(HasSubstr("Killing")));
}

TEST(ClusterFeed, says_which_right_is_missing) {
  World world;
  world.api.set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::training_jobs) return {};
    return RequestFault{.error = {Code::forbidden, "cannot list trainingjobs", "", {}}};
  });
  world.feed->start();
  EXPECT_TRUE(world.until([&] { return !world.feed->problem().empty(); }));
  EXPECT_THAT(world.feed->problem(), HasSubstr("cannot list trainingjobs"));
}

TEST(ClusterFeed, of_a_job_that_is_not_there_has_no_log) {
  World world;
  world.create_job("mnist");
  world.feed->start();
  EXPECT_EQ(
      world.feed->open_log({.job = {"default", "none"}, .rank = 0, .attempt = 0, .last_id = {}}),
      nullptr);
  ASSERT_TRUE(world.until([&] { return world.board.find(kJob) != nullptr; }));
  EXPECT_NE(world.feed->open_log({.job = kJob, .rank = 0, .attempt = 0, .last_id = {}}), nullptr);
}

TEST(ClusterFeed, of_an_attempt_whose_pods_are_gone_has_no_log_and_says_so) {
  World world;
  world.create_job("mnist");
  const json running = {{"status", {{"phase", "Running"}, {"attempt", 1}}}};
  ASSERT_TRUE(world.api.objects().patch_status(Resource::training_jobs, kJob, running).ok());
  world.feed->start();
  ASSERT_TRUE(world.until([&] { return world.board.find(kJob) != nullptr; }));
  const auto log = world.feed->open_log({.job = kJob, .rank = 0, .attempt = 0, .last_id = {}});
  ASSERT_NE(log, nullptr);
  std::string said;
  log->next([&](std::optional<std::string> event) { said = event.value_or("nothing"); });
  EXPECT_THAT(said, HasSubstr("the pod of that attempt has gone"));
  log->next([&](std::optional<std::string> event) { said = event.value_or("nothing"); });
  EXPECT_EQ(said, "nothing");
}

}  // namespace
}  // namespace tj::ui
