// `tj check`: the job that it makes of another one, its run on the API server in memory, and that
// nothing of it stays, whatever fails.
#include "cli/check/check_job.h"

#include <gtest/gtest.h>

#include <csignal>

#include "cli/check/check_run.h"
#include "operator/api/json.h"
#include "tests/cli/memory_cluster.h"
#include "yaml/yaml_json.h"

namespace tj::check {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kJob = R"(
apiVersion: kubebrain.io/v1
kind: TrainingJob
metadata: {name: train, namespace: team, uid: u1, resourceVersion: "7"}
spec:
  runPolicy: {suspend: true}
  masterPort: 23456
  replicaSpecs:
    Worker:
      replicas: 2
      template:
        metadata: {labels: {team: vision}}
        spec:
          nodeSelector: {pool: gpu}
          initContainers: [{name: load, image: i}]
          containers:
          - name: training
            image: registry/train:1
            command: [trainer, launch, --, trainer, train]
            args: [--model=taehv, --data, /data/a, --steps=5, --out=/out]
            env: [{name: NCCL_DEBUG, value: INFO}]
            resources: {limits: {nvidia.com/gpu: 8}}
            readinessProbe: {exec: {command: ["true"]}}
            volumeMounts: [{name: data, mountPath: /data}]
          - {name: sidecar, image: s}
          volumes: [{name: data, hostPath: {path: /mnt/data}}]
)";

json the_job() {
  const auto documents = parse_yaml(kJob, "job");
  EXPECT_TRUE(documents);
  return documents->at(0);
}

const json& template_of(const json& job) {
  return job["spec"]["replicaSpecs"]["Worker"]["template"];
}

TEST(CheckJob, has_the_image_volumes_and_network_of_the_job) {
  const CheckJob made = make_check_job(the_job(), {}, {});
  EXPECT_EQ(describe(validate_manifest(made.job)), "");
  EXPECT_EQ(made.job["metadata"]["name"], "train-check");
  EXPECT_EQ(made.job["metadata"]["namespace"], "team");
  EXPECT_EQ(made.job["metadata"]["ownerReferences"][0]["uid"], "u1");
  const json run_policy = {{"maxRestarts", 0},
                           {"cleanPodPolicy", "None"},
                           {"activeDeadlineSeconds", 300},
                           {"ttlSecondsAfterFinished", 600}};
  EXPECT_EQ(made.job["spec"]["runPolicy"], run_policy);
  EXPECT_EQ(made.job["spec"]["masterPort"], 23456);
  const json wanted = {
      {"name", "check"},
      {"image", "registry/train:1"},
      {"command", {"trainer", "check", "--model=taehv", "--data", "/data/a", "--out=/out"}},
      {"env", {{{"name", "NCCL_DEBUG"}, {"value", "INFO"}}}},
      {"resources", {{"limits", {{"nvidia.com/gpu", 8}}}}},
      {"volumeMounts", {{{"name", "data"}, {"mountPath", "/data"}}}}};
  const json& pod = template_of(made.job)["spec"];
  EXPECT_EQ(pod["containers"], json::array({wanted}));
  EXPECT_EQ(pod["nodeSelector"], json({{"pool", "gpu"}}));
  EXPECT_FALSE(pod.contains("initContainers") || pod.contains("affinity"));
  EXPECT_EQ(template_of(made.job)["metadata"]["labels"], json({{"team", "vision"}}));
  EXPECT_EQ(made.notes, Words{"init containers and sidecars are not run"});
}

TEST(CheckJob, of_a_job_that_runs_takes_its_nodes_and_leaves_its_devices) {
  json job = the_job();
  job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = true;
  const CheckJob made = make_check_job(job, {.nodes = {"n1", "n2"}, .is_active = true},
                                       {.image = "trainer:1", .arguments = {"--json"}});
  EXPECT_EQ(describe(validate_manifest(made.job)), "");
  const json& pod = template_of(made.job)["spec"];
  EXPECT_EQ(pod["containers"][0]["command"], json({"trainer", "check", "--json"}));
  EXPECT_EQ(pod["containers"][0]["image"], "trainer:1");
  EXPECT_FALSE(pod["containers"][0].contains("resources"));
  EXPECT_EQ(made.job["spec"]["masterPort"], 23457);
  const json& terms = pod["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[1]["matchFields"][0]["values"], json::array({"n2"}));
  EXPECT_TRUE(pod["affinity"].contains("podAntiAffinity"));
  EXPECT_EQ(made.notes.size(), 3U);
  const CheckJob crowded = make_check_job(job, {.nodes = {"n1"}, .is_active = true}, {});
  EXPECT_FALSE(template_of(crowded.job)["spec"]["affinity"].contains("podAntiAffinity"));
}

TEST(CheckJob, has_a_name_that_fits) {
  json job = the_job();
  for (int workers : {1, 2, 11, 10'000}) {
    job["spec"]["replicaSpecs"]["Worker"]["replicas"] = workers;
    const auto chars = 63 - std::string("-worker-").size() - std::to_string(workers - 1).size();
    job["metadata"]["name"] = std::string(chars - 7, 'a') + "------a";
    EXPECT_EQ(describe(validate_manifest(make_check_job(job, {}, {}).job)), "") << workers;
  }
}

TEST(CheckJob, takes_what_trainer_check_knows_of_the_jobs_command) {
  const auto found = [](const json& command, const json& args) {
    return check_arguments({{"command", command}, {"args", args}});
  };
  EXPECT_EQ(found({"/usr/bin/trainer", "train", "--data"}, json::array({"/d"})),
            (Words{"--data", "/d"}));
  EXPECT_EQ(found({"trainer", "train", "--data"}, nullptr), Words{"--data"});
  EXPECT_EQ(found({"trainer", "train", "--cut-prompts", "--tokenizer", "/t"},
                  {"--lr=1", "--delta-actions=2", "--data=/d", "--held-out=0.1"}),
            (Words{"--data=/d", "--", "--cut-prompts", "--tokenizer", "/t", "--delta-actions=2"}));
  EXPECT_EQ(found({"bash", "-c", "trainer train --data /d"}, nullptr), Words{});
  EXPECT_EQ(found({"trainer", "launch", "--nproc", "2"}, nullptr), Words{});
  EXPECT_EQ(found(nullptr, 7), Words{});
}

TEST(CheckJob, the_place_of_a_job_is_that_of_its_own_pods) {
  Pod pod;
  pod.meta.controller_uid = "u1";
  pod.node = "n2";
  pod.phase = PodPhase::failed;
  Pod foreign = pod;
  foreign.meta.controller_uid = "u0";
  foreign.node = "n9";
  Place place = place_of({pod, foreign}, "u1");
  EXPECT_EQ(place.nodes, Words{"n2"});
  EXPECT_FALSE(place.is_active);
  pod.phase = PodPhase::running;
  EXPECT_TRUE(place_of({pod}, "u1").is_active);
}

/// Plays the operator and the kubelet, between one request and the next.
struct World {
  MemoryCluster cluster;
  submit::Interrupts interrupts{cluster.session.loop()};
  Words printed;
  int requests = 0;
  std::vector<int> exit_codes{0, 0};
  int fails_at = -1;
  int signal_at = -1;
  bool has_operator = true;
  std::chrono::seconds limit{300};

  World() {
    cluster.api->set_request_fault([this](const Request& request) -> std::optional<RequestFault> {
      const int number = requests++;
      if (number == signal_at) raise(SIGINT);
      if (request.verb == Verb::get && has_operator) play();
      if (number != fails_at) return std::nullopt;
      return RequestFault{RequestFault::Kind::fail_before, {Code::forbidden, "no", "", {}}};
    });
  }
  void play() {
    ObjectStore& store = cluster.api->objects();
    const ObjectKey job{"team", "train-check"};
    if (!store.get(Resource::training_jobs, job)) return;
    for (std::size_t rank = 0; rank < exit_codes.size(); ++rank)
      end_pod(store, static_cast<int>(rank));
    const json status = {{"status", {{"phase", "Failed"}, {"reason", "R"}}}};
    ASSERT_TRUE(store.patch_status(Resource::training_jobs, job, status));
  }
  void end_pod(ObjectStore& store, int rank) {
    const std::string name = "train-check-worker-" + std::to_string(rank);
    const json labels = {{"job-name", "train-check"},
                         {"kubebrain.io/trainingjob", "train-check"},
                         {"kubebrain.io/worker-index", std::to_string(rank)},
                         {"kubebrain.io/attempt", "0"}};
    const json pod = {
        {"metadata", {{"name", name}, {"labels", labels}}},
        {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "check"}, {"image", "i"}}}}}}};
    if (!store.create(Resource::pods, "team", pod)) return;
    const json terminated = {{"exitCode", exit_codes[static_cast<std::size_t>(rank)]},
                             {"reason", "Completed"}};
    const json container = {{"name", "check"}, {"state", {{"terminated", terminated}}}};
    const json status = {
        {"status", {{"phase", "Failed"}, {"containerStatuses", json::array({container})}}}};
    ASSERT_TRUE(store.patch_status(Resource::pods, {"team", name}, status));
  }
  Result<std::vector<RankResult>> run() {
    json job = the_job();
    job["metadata"].erase("uid");  // of a file: it has no owner
    return run_check({.session = cluster.session,
                      .interrupts = interrupts,
                      .read_log = [](const ObjectKey& pod) { return Words{"log of " + pod.name}; },
                      .print = [this](const std::string& line) { printed.push_back(line); },
                      .period = std::chrono::milliseconds(0),
                      .limit = limit},
                     make_check_job(job, {}, {}).job);
  }
  bool is_there() { return cluster.count(Resource::training_jobs) > 0; }
};

struct Run : testing::Test, World {};

TEST_F(Run, reports_rank_by_rank_and_leaves_nothing) {
  exit_codes = {0, 78};
  const auto results = run();
  ASSERT_TRUE(results) << describe(results.error());
  EXPECT_EQ(report_text(*results, "i"),
            "worker 0 on node n1: pass\n  log of train-check-worker-0\n"
            "worker 1 on node n1: fatal (exit code 78)\n  log of train-check-worker-1\n"
            "training can't begin: 1 of 2 workers pass\n");
  EXPECT_FALSE(is_there());
}

TEST_F(Run, a_worker_without_a_pod_has_no_result) {
  exit_codes = {0};
  const auto results = run();
  ASSERT_TRUE(results && results->size() == 2);
  EXPECT_NE(report_text(*results, "i").find("worker 1: no result\n"), std::string::npos);
}

TEST_F(Run, an_image_without_the_trainer_is_named) {
  exit_codes = {128, 128};
  const auto results = run();
  ASSERT_TRUE(results);
  EXPECT_NE(report_text(*results, "my/image")
                .find("the image my/image seems to have no program `trainer`"),
            std::string::npos);
}

TEST_F(Run, without_an_operator_it_is_given_up) {
  has_operator = false;
  limit = std::chrono::seconds(0);
  const auto results = run();
  ASSERT_FALSE(results);
  EXPECT_NE(describe(results.error()).find("is an operator running?"), std::string::npos);
  EXPECT_FALSE(is_there());
}

TEST_F(Run, whatever_call_fails_the_check_is_deleted_or_named) {
  ASSERT_TRUE(run());
  const int calls = requests;
  ASSERT_GE(calls, 4);  // create, get, list, delete
  for (int call = 0; call < calls; ++call) {
    requests = 0;
    printed.clear();
    fails_at = call;
    const auto results = run();
    cluster.settle();
    if (is_there()) {
      ASSERT_FALSE(printed.empty()) << call;
      EXPECT_NE(printed.back().find("job team/train-check can't be deleted"), std::string::npos)
          << call;
      ASSERT_TRUE(cluster.api->objects().remove(Resource::training_jobs, {"team", "train-check"}));
    }
    EXPECT_EQ(results.ok(), call == calls - 1) << call;
  }
}

TEST_F(Run, a_signal_at_any_call_deletes_it) {
  ASSERT_TRUE(run());
  const int calls = requests;
  for (int call = 0; call + 1 < calls; ++call) {
    World own;
    own.signal_at = call;
    const auto results = own.run();
    EXPECT_TRUE(own.interrupts.number()) << call;
    EXPECT_FALSE(own.is_there()) << call;
  }
}

}  // namespace
}  // namespace tj::check
