#include "operator/plan/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/json.h"

namespace tj {
namespace {
using nlohmann::json;

TrainingJob job_with(const json& pod_template) {
  const json object = {
      {"metadata",
       {{"name", "mnist"}, {"namespace", "team"}, {"uid", "u-1"}, {"resourceVersion", "7"}}},
      {"spec", {{"replicaSpecs", {{"Worker", {{"replicas", 2}, {"template", pod_template}}}}}}}};
  auto job = job_from_json(object);
  EXPECT_TRUE(job.ok());
  EXPECT_FALSE(job->spec_error) << *job->spec_error;
  return *job;
}

const json kTemplate = json::parse(R"json({
  "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "kept"}},
  "spec": {
    "initContainers": [{"name": "fetch", "image": "i"}],
    "containers": [
      {"name": "training", "image": "i", "env": [{"name": "OUT", "value": "/data/$(RANK)"
}],
       "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "64Gi"}}, "unknownField": {
  "big" : 9007199254740993
}
},
      {"name": "sidecar", "image": "j"}],
    "volumes": [{"name": "data", "hostPath": {"path": "/mnt/project"}}]
}
})json");

std::vector<std::string> env_names(const json& container) {
  std::vector<std::string> names;
  for (const json& variable : container["env"]) names.push_back(variable["name"]);
  return names;
}

TEST(MakePod, says_who_the_worker_is_before_the_users_own_variables) {
  const json pod = make_pod(job_with(kTemplate), {.worker_index = 1, .attempt = 3});
  const std::vector<std::string> expected = {"WORLD_SIZE",
                                             "RANK",
                                             "MASTER_ADDR",
                                             "MASTER_PORT",
                                             "NNODES",
                                             "NODE_RANK",
                                             "NPROC_PER_NODE",
                                             "PET_NNODES",
                                             "PET_NODE_RANK",
                                             "PET_NPROC_PER_NODE",
                                             "PET_MASTER_ADDR",
                                             "PET_MASTER_PORT",
                                             "TRAININGJOB_NAME",
                                             "TRAININGJOB_NAMESPACE",
                                             "TRAININGJOB_UID",
                                             "TRAININGJOB_ATTEMPT",
                                             "POD_IP",
                                             "NODE_NAME",
                                             "OUT"};
  EXPECT_EQ(env_names(pod["spec"]["containers"][0]), expected);
  const json& env = pod["spec"]["containers"][0]["env"];
  EXPECT_EQ(env[1]["value"], "1");
  EXPECT_EQ(env[2]["value"], "mnist-worker-0.mnist");
  EXPECT_EQ(env[6]["value"], "8");
  EXPECT_EQ(env[15]["value"], "3");
  EXPECT_EQ(env[16]["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["env"].size(), 18u);
  EXPECT_EQ(pod["spec"]["containers"][1]["env"].size(), 18u);
}

TEST(MakePod, is_named_labelled_and_owned) {
  const json pod = make_pod(job_with(kTemplate), {.worker_index = 1, .attempt = 3});
  EXPECT_EQ(pod["metadata"]["name"], "mnist-worker-1");
  EXPECT_EQ(pod["metadata"]["namespace"], "team");
  EXPECT_EQ(pod["metadata"]["labels"], (json{{"team", "vision"},
                                             {"job-name", "mnist"},
                                             {"kubebrain.io/trainingjob", "mnist"},
                                             {"kubebrain.io/worker-index", "1"},
                                             {"kubebrain.io/attempt", "3"}}));
  EXPECT_EQ(pod["metadata"]["annotations"]["note"], "kept");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(pod["spec"]["hostname"], "mnist-worker-1");
  EXPECT_EQ(pod["spec"]["subdomain"], "mnist");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
}

TEST(MakePod, leaves_the_rest_of_the_template_untouched) {
  const json pod = make_pod(job_with(kTemplate), {.worker_index = 0, .attempt = 0});
  EXPECT_EQ(pod["spec"]["containers"][0]["unknownField"]["big"].get<long long>(), 9007199254740993);
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"],
            kTemplate["spec"]["containers"][0]["resources"]);
  EXPECT_EQ(pod["spec"]["volumes"], kTemplate["spec"]["volumes"]);
}

TEST(MakePod, works_on_the_smallest_template) {
  const json pod =
      make_pod(job_with({{"spec", {{"containers", {{{"name", "t"}, {"image", "i"}}}}}}}), {});
  EXPECT_EQ(pod["metadata"]["name"], "mnist-worker-0");
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][6]["value"], "auto");
}

TEST(MakePod, reads_gpu_quantities_as_numbers_or_text) {
  for (const auto& [quantity, expected] :
       {std::pair<json, const char*>{8, "8"}, {"4", "4"}, {"1k", "auto"}, {0, "auto"}}) {
    json pod_template = kTemplate;
    pod_template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = quantity;
    EXPECT_EQ(make_pod(job_with(pod_template), {})["spec"]["containers"][0]["env"][6]["value"],
              expected)
        << quantity;
  }
}

TEST(MakeService, is_headless_and_publishes_unready_addresses) {
  const json service = make_service(job_with(kTemplate));
  EXPECT_EQ(service["metadata"]["name"], "mnist");
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  EXPECT_EQ(service["spec"]["selector"]["kubebrain.io/trainingjob"], "mnist");
  EXPECT_EQ(service["metadata"]["ownerReferences"][0]["uid"], "u-1");
}

TEST(MakeNetworkPolicy, lets_in_the_jobs_own_pods_and_the_operator_to_one_port) {
  TrainingJob job = job_with(kTemplate);
  const json ingress = make_network_policy(job, "operators")["spec"]["ingress"];
  ASSERT_EQ(ingress.size(), 2U);
  EXPECT_FALSE(ingress[0].contains("ports"));
  EXPECT_EQ(ingress[1]["ports"], json::parse(R"([{"protocol": "TCP", "port": 29600}])"));
  EXPECT_EQ(ingress[1]["from"], json::parse(R"([{
      "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "operators"}},
      "podSelector": {"matchLabels": {"kubebrain.io/component": "trainingjob-operator"}}}])"))
      << "anybody may give that label to a pod of a namespace of theirs";
  EXPECT_EQ(make_network_policy(job, "")["spec"]["ingress"].size(), 1U) << "nobody asks";
  job.progress_port.reset();
  EXPECT_EQ(make_network_policy(job, "operators")["spec"]["ingress"].size(), 1U);
}

TEST(MakeEvent, has_one_name_for_one_piece_of_news) {
  const TrainingJob job = job_with(kTemplate);
  const TimePoint now{std::chrono::seconds{1'800'000'000}};
  const json failed = make_event(job, {true, "WorkerFailed", "worker 1 failed"}, now);
  const json again =
      make_event(job, {true, "WorkerFailed", "worker 1 failed"}, now + std::chrono::seconds{5});
  const json other = make_event(job, {true, "WorkerFailed", "worker 0 failed"}, now);
  EXPECT_EQ(failed["metadata"]["name"], again["metadata"]["name"]);
  EXPECT_NE(failed["metadata"]["name"], other["metadata"]["name"]);
  EXPECT_EQ(failed["type"], "Warning");
  EXPECT_EQ(failed["involvedObject"]["uid"], "u-1");
}

}  // namespace
}  // namespace tj
