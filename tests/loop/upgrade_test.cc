// What an earlier release left in a cluster, as its own operator wrote it (tests/golden/upgrade),
// under the operator of today: gangs run on, and nothing is written but statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/loop/world.h"
#include "tests/places.h"

namespace tj {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

Resource resource_of(const json& object) {
  const std::string kind = object.at("kind");
  if (kind == "TrainingJob") return Resource::training_jobs;
  if (kind == "Pod") return Resource::pods;
  if (kind == "Service") return Resource::services;
  return kind == "Node" ? Resource::nodes : Resource::network_policies;
}

/// A cluster at the moment when it was recorded, and no operator yet.
class Upgrade : public testing::Test {
 protected:
  Upgrade() {
    std::ifstream in(source_dir() + "/tests/golden/upgrade/0.1.0.json");
    recorded_ = json::parse(in);
    for (const json& object : recorded_["objects"]) {
      TJ_CHECK(world_.objects().restore(resource_of(object), object).ok(), object.dump());
    }
    const auto recorded_at = parse_time(recorded_["time"]);
    world_.oversleep(*recorded_at - world_.options().now());
    world_.silence_node("n4");  // it was, and has nobody who plays its kubelet
  }

  std::vector<json> recorded_jobs() const {
    std::vector<json> jobs;
    for (const json& object : recorded_["objects"]) {
      if (object["kind"] == "TrainingJob") jobs.push_back(object);
    }
    return jobs;
  }
  json status(const json& job) { return world_.job(job["metadata"]["name"])["status"]; }

  World world_;
  json recorded_;
};

TEST_F(Upgrade, of_the_operator_writes_nothing_but_statuses) {
  world_.start_controller();
  world_.pass(1s);
  EXPECT_EQ(world_.writes(), world_.requests("patch trainingjobs")) << "only statuses";
  EXPECT_LE(world_.writes(), static_cast<int>(recorded_jobs().size())) << "each of them once";
  const int writes = world_.writes();
  world_.restart_controller();
  world_.pass(1s);
  EXPECT_EQ(world_.writes(), writes) << "what was taken over is not taken over again";
}

TEST_F(Upgrade, of_the_operator_changes_nothing_in_the_life_of_a_job) {
  world_.start_controller();
  world_.pass(1s);
  for (const json& job : recorded_jobs()) {
    json before = job["status"];
    json after = status(job);
    EXPECT_EQ(after["observedGeneration"], job["metadata"]["generation"]) << job["metadata"];
    const bool has_attempt = !is_terminal(*parse_phase(after["phase"])) && after["worldSize"] > 0;
    const std::string hash = after["templateHash"];
    if (has_attempt) {
      EXPECT_TRUE(hash.starts_with("v1-")) << hash;
    }
    for (json* each : {&before, &after}) {
      for (const char* taken_over : {"observedGeneration", "templateHash"}) each->erase(taken_over);
      // Fields that this release has added.
      for (const char* added : {"quickRestarts", "furthestStep", "restartsUncounted",
                                "succeededRanks", "networkPolicyHash"}) {
        each->erase(added);
      }
    }
    EXPECT_EQ(json::diff(before, after), json::array()) << job["metadata"]["name"];
  }
}

TEST_F(Upgrade, in_the_middle_of_a_restart_goes_on_with_it) {
  world_.start_controller();
  world_.set_kubelet(Kubelet::starts_pods);
  ASSERT_TRUE(world_.pass_until([&] { return world_.phase("parting") == "Running"; }));
  EXPECT_EQ(world_.job("parting")["status"]["attempt"], 1);
  EXPECT_EQ(world_.job("parting")["status"]["restarts"], 1);
}

TEST_F(Upgrade, leaves_a_change_of_the_spec_what_it_was) {
  world_.start_controller();
  world_.pass(1s);
  const json resized{{"spec", {{"replicaSpecs", {{"Worker", {{"replicas", 4}}}}}}}};
  ASSERT_TRUE(
      world_.objects().patch(Resource::training_jobs, {"default", "running"}, resized).ok());
  world_.pass(1s);
  EXPECT_EQ(world_.job("running")["status"]["attempt"], 1);
  EXPECT_EQ(world_.job("running")["status"]["worldSize"], 4);
}

TEST_F(Upgrade, with_a_rule_that_a_job_breaks_lets_it_run_and_says_so) {
  const json broken{{"spec", {{"runPolicy", {{"maxRestarts", 5000}}}}}};
  ASSERT_TRUE(world_.objects().patch(Resource::training_jobs, {"default", "running"}, broken).ok());
  const auto pods = world_.pod_names();
  world_.start_controller();
  world_.pass(1s);
  const json seen = world_.job("running");
  EXPECT_EQ(seen["status"]["phase"], "Running");
  EXPECT_EQ(seen["status"]["attempt"], 0);
  EXPECT_EQ(world_.pod_names(), pods);
  const json said = seen["status"]["conditions"].back();
  EXPECT_EQ(said["type"], "SpecInvalid");
  EXPECT_EQ(said["status"], "True");
  EXPECT_THAT(said["message"].get<std::string>(), testing::HasSubstr("runPolicy.maxRestarts"));
}

}  // namespace
}  // namespace tj
