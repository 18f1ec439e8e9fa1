// A job and the ConfigMap of its script are created, on the API server in memory: in which order,
// and what is left when a call fails; and a job is followed to its end.
#include "cli/submit/creation.h"

#include <gtest/gtest.h>

#include <csignal>

#include "cli/submit/following.h"
#include "operator/api/json.h"
#include "tests/cli/memory_cluster.h"

namespace tj::submit {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

MadeJob made(bool has_script = true) {
  SubmitFlags flags{.name = "a", .image = "i"};
  std::vector<FieldError> errors;
  std::optional<Script> script;
  if (has_script) script = Script{.file_name = "start.sh", .text = "#!/bin/sh\n"};
  MadeJob job = make_job(flags, script, errors);
  EXPECT_EQ(describe(errors), "");
  return job;
}

struct Creation : testing::Test {
  MemoryCluster cluster;

  std::string error_of(const Result<json>& result) {
    return result ? "succeeded" : describe(result.error());
  }
  std::size_t jobs() { return cluster.count(Resource::training_jobs); }
  std::size_t config_maps() { return cluster.count(Resource::config_maps); }
};

TEST_F(Creation, the_job_is_first_and_owns_its_config_map) {
  const auto job = create(cluster.session, made(), {});
  ASSERT_TRUE(job) << describe(job.error());
  const std::string name = (*made().config_map)["metadata"]["name"];
  EXPECT_EQ(cluster.api->request_log(),
            (Words{"create trainingjobs.kubebrain.io team/a", "create configmaps team/" + name}));
  cluster.settle();
  ASSERT_EQ(config_maps(), 1U);
  const json& config_map = cluster.api->objects().objects(Resource::config_maps)[0];
  EXPECT_EQ(config_map["data"], json({{"start.sh", "#!/bin/sh\n"}}));
  EXPECT_EQ(config_map["metadata"]["ownerReferences"][0]["uid"], (*job)["metadata"]["uid"]);
  EXPECT_EQ((*job)["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["volumes"][0]["configMap"]
                  ["name"],
            name);
  ASSERT_TRUE(remove_job(cluster.session, {"team", "a"}, (*job)["metadata"]["uid"]));
  cluster.settle();
  EXPECT_EQ(jobs() + config_maps(), 0U);
}

TEST_F(Creation, a_call_that_fails_leaves_nothing_behind_or_says_what) {
  using Kind = RequestFault::Kind;
  struct Row {
    int call;
    Kind kind;
    Code code;
    std::size_t jobs_left;
    std::string says;
  };
  const std::vector<Row> table = {
      {0, Kind::fail_before, Code::forbidden, 0, "is not created: no"},
      {0, Kind::fail_before, Code::unavailable, 0, "see `kubectl get tj a -n team`"},
      {0, Kind::fail_after, Code::timeout, 1, "its workers would wait for their script"},
      {1, Kind::fail_before, Code::forbidden, 0,
       "its script does not get into a ConfigMap: no\nthe job is deleted again"},
      {1, Kind::fail_before, Code::unavailable, 0, "the job is deleted again"},
      {1, Kind::fail_after, Code::timeout, 0, "the job is deleted again"}};
  for (const Row& row : table) {
    MemoryCluster own;
    own.fail_call(row.call, row.kind, row.code);
    const std::string said = error_of(create(own.session, made(), {}));
    EXPECT_NE(said.find(row.says), std::string::npos) << said;
    own.settle();
    EXPECT_EQ(own.count(Resource::training_jobs), row.jobs_left) << said;
    EXPECT_EQ(own.count(Resource::config_maps), 0U) << said;
  }
}

TEST_F(Creation, a_job_that_can_not_be_taken_away_is_told) {
  cluster.fail_calls_from(1, Code::unavailable);
  const std::string said = error_of(create(cluster.session, made(), {}));
  EXPECT_NE(said.find("delete it by `kubectl delete tj a -n team`"), std::string::npos) << said;
  EXPECT_EQ(jobs(), 1U);
}

TEST_F(Creation, a_name_that_is_taken_is_told_and_replaced_only_when_asked) {
  const auto first = create(cluster.session, made(), {});
  ASSERT_TRUE(first);
  const std::string said = error_of(create(cluster.session, made(), {}));
  EXPECT_EQ(said,
            "job team/a: there is one of that name already; take another name, or --replace, "
            "which deletes that one first");
  const auto second = create(cluster.session, made(), {.replaces = true});
  ASSERT_TRUE(second) << describe(second.error());
  EXPECT_NE((*first)["metadata"]["uid"], (*second)["metadata"]["uid"]);
  cluster.settle();
  EXPECT_EQ(jobs(), 1U);
  ASSERT_EQ(config_maps(), 1U);
  EXPECT_EQ(cluster.api->objects().objects(
                Resource::config_maps)[0]["metadata"]["ownerReferences"][0]["uid"],
            (*second)["metadata"]["uid"]);
}

TEST_F(Creation, replacing_nothing_creates) {
  EXPECT_TRUE(create(cluster.session, made(false), {.replaces = true}));
  EXPECT_EQ(cluster.api->request_log(), (Words{"delete trainingjobs.kubebrain.io team/a",
                                               "create trainingjobs.kubebrain.io team/a"}));
}

/// What the collection has not come to yet.
json left_over(const json& owners) {
  json config_map = *made().config_map;
  config_map["data"] = {{"start.sh", "old"}};
  config_map["metadata"]["ownerReferences"] = owners;
  return config_map;
}

TEST_F(Creation, the_config_map_of_an_earlier_job_gives_way) {
  json other = made(false).job;
  other["metadata"]["name"] = "b";
  const auto alive = cluster.api->objects().create(Resource::training_jobs, "team", other);
  ASSERT_TRUE(alive);
  const json owner = {{"apiVersion", "kubebrain.io/v1"},
                      {"kind", "TrainingJob"},
                      {"name", "a"},
                      {"uid", (*alive)["metadata"]["uid"]}};
  ASSERT_TRUE(cluster.api->objects().create(Resource::config_maps, "team",
                                            left_over(json::array({owner}))));
  ASSERT_TRUE(create(cluster.session, made(), {}));
  cluster.settle();
  ASSERT_EQ(config_maps(), 1U);
  EXPECT_EQ(cluster.api->objects().objects(Resource::config_maps)[0]["data"]["start.sh"],
            "#!/bin/sh\n");
}

TEST_F(Creation, somebody_elses_config_map_stays) {
  ASSERT_TRUE(
      cluster.api->objects().create(Resource::config_maps, "team", left_over(json::array())));
  const std::string said = error_of(create(cluster.session, made(), {}));
  EXPECT_NE(said.find("it is not of this job"), std::string::npos) << said;
  cluster.settle();
  EXPECT_EQ(jobs(), 0U);
  EXPECT_EQ(config_maps(), 1U);
}

struct Following : testing::Test {
  MemoryCluster cluster;
  Interrupts interrupts{cluster.session.loop()};
  Words lines;
  ObjectMeta meta;

  void SetUp() override {
    const auto job = create(cluster.session, made(false), {});
    ASSERT_TRUE(job);
    meta = meta_from_json(*job);
  }
  /// `look(n)` happens before the answer to the n-th look.
  Result<std::optional<TrainingJob>> follow_with(std::function<void(int)> look) {
    int looks = 0;
    cluster.api->set_request_fault([&, look](const Request&) -> std::optional<RequestFault> {
      look(looks++);
      return cluster.fault;
    });
    return follow(cluster.session, meta, interrupts,
                  {.period = std::chrono::milliseconds(0),
                   .failed_looks_max = 3,
                   .print = [this](const std::string& line) { lines.push_back(line); }});
  }
  void phase(const std::string& phase) {
    const json status = {{"status", {{"phase", phase}, {"reason", "R"}, {"message", "a\x1b[31m"}}}};
    ASSERT_TRUE(
        cluster.api->objects().patch_status(Resource::training_jobs, {"team", "a"}, status));
  }
};

TEST_F(Following, each_change_is_told_to_the_end) {
  const auto job = follow_with([&](int look) {
    if (look == 2) phase("Starting");
    if (look == 4) phase("Failed");
  });
  ASSERT_TRUE(job && *job);
  EXPECT_EQ(lines, (Words{"job a: Pending", "job a: Starting: a\xef\xbf\xbd[31m",
                          "job a: Failed (R): a\xef\xbf\xbd[31m"}));
}

TEST_F(Following, a_job_that_is_deleted_or_another_one_is_told) {
  auto job = follow_with([&](int look) {
    if (look == 1) {
      ASSERT_TRUE(cluster.api->objects().remove(Resource::training_jobs, {"team", "a"}));
    }
  });
  ASSERT_FALSE(job);
  EXPECT_EQ(describe(job.error()), "job team/a: was deleted");
  cluster.api->set_request_fault({});
  ASSERT_TRUE(create(cluster.session, made(false), {}));
  job = follow_with([](int) {});
  ASSERT_FALSE(job);
  EXPECT_EQ(describe(job.error()),
            "job team/a: was deleted, and there is another one of that name");
}

TEST_F(Following, a_server_that_is_away_for_a_while_is_waited_for) {
  const auto fail = [&](bool fails, Code code) {
    cluster.fault.reset();
    if (fails)
      cluster.fault = RequestFault{RequestFault::Kind::fail_before, {code, "away", "", {}}};
  };
  auto job = follow_with([&](int look) {
    fail(look > 0 && look < 4, Code::unavailable);
    if (look == 4) phase("Succeeded");
  });
  EXPECT_TRUE(job && *job);
  job = follow_with([&](int) { fail(true, Code::unavailable); });
  EXPECT_FALSE(job);
  job = follow_with([&](int) { fail(true, Code::forbidden); });
  EXPECT_FALSE(job);
}

TEST_F(Following, a_signal_ends_it) {
  const auto job = follow_with([](int look) {
    if (look == 2) raise(SIGTERM);
  });
  ASSERT_TRUE(job);
  EXPECT_FALSE(*job);
  EXPECT_EQ(interrupts.exit_code(), 143);
}

}  // namespace
}  // namespace tj::submit
