// Manifests of other kinds, good ones and any others: what is printed for them is a valid manifest.
#include "cli/job_conversion.h"

#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "yaml/yaml_json.h"

namespace tj {
namespace {
using nlohmann::json;

json pod_template() {
  return {{"metadata", {{"labels", {{"team", "vision"}}}, {"annotations", {{"note", "b"}}}}},
          {"spec",
           {{"restartPolicy", "OnFailure"},
            {"hostname", "a"},
            {"initContainers", {{{"name", "init"}, {"env", {{{"name", "RANK"}}}}}}},
            {"containers",
             {{{"name", "main"},
               {"image", "i"},
               {"command", {"bash", "-c", "a\nb\n"}},
               {"resources", {{"limits", {{"nvidia.com/gpu", 8}}}}},
               {"env",
                {{{"name", "WORLD_SIZE"}, {"value", "16"}},
                 {{"name", "MASTER_PORT"}, {"value", "23456"}},
                 {{"name", "NPROC_PER_NODE"}, {"value", "8"}},
                 {{"name", "INDEX"},
                  {"valueFrom",
                   {{"fieldRef",
                     {{"fieldPath",
                       "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}}}},
                 {{"name", "MINE"}, {"value", "yes"}}}}}}}}}};
}

json batch_job() {
  return {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata",
       {{"name", "train"}, {"namespace", "ml"}, {"labels", {{"job-name", "train"}, {"a", "b"}}}}},
      {"spec",
       {{"completions", 2},
        {"parallelism", 1},
        {"completionMode", "Indexed"},
        {"backoffLimit", 4},
        {"activeDeadlineSeconds", 3600},
        {"ttlSecondsAfterFinished", 60},
        {"suspend", true},
        {"podFailurePolicy", {{"rules", json::array()}}},
        {"template", pod_template()}}}};
}

json pytorch_job() {
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "PyTorchJob"},
          {"metadata", {{"name", "train"}}},
          {"spec",
           {{"nprocPerNode", "8"},
            {"runPolicy", {{"cleanPodPolicy", "All"}, {"backoffLimit", 1}}},
            {"elasticPolicy", {{"minReplicas", 1}}},
            {"pytorchReplicaSpecs",
             {{"Master",
               {{"replicas", 1}, {"restartPolicy", "OnFailure"}, {"template", pod_template()}}},
              {"Worker", {{"replicas", 3}, {"template", pod_template()}}}}}}}};
}

json train_job() {
  const json container = pod_template()["spec"]["containers"][0];
  return {{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
          {"kind", "TrainJob"},
          {"metadata", {{"name", "train"}}},
          {"spec",
           {{"runtimeRef", {{"name", "torch-distributed"}}},
            {"labels", {{"team", "vision"}}},
            {"suspend", false},
            {"trainer",
             {{"image", "i"},
              {"command", container["command"]},
              {"env", container["env"]},
              {"numNodes", 2},
              {"numProcPerNode", "8"},
              {"resourcesPerNode", container["resources"]}}}}}};
}

json job_set() {
  const json inner = {{"parallelism", 2}, {"backoffLimit", 0}, {"template", pod_template()}};
  const json entry = {{"name", "workers"}, {"replicas", 2}, {"template", {{"spec", inner}}}};
  return {
      {"apiVersion", "jobset.x-k8s.io/v1alpha2"},
      {"kind", "JobSet"},
      {"metadata", {{"name", "train"}}},
      {"spec",
       {{"failurePolicy", {{"maxRestarts", 5}}}, {"replicatedJobs", json::array({entry, entry})}}}};
}

json leader_worker_set() {
  return {
      {"apiVersion", "leaderworkerset.x-k8s.io/v1"},
      {"kind", "LeaderWorkerSet"},
      {"metadata", {{"name", "train"}}},
      {"spec",
       {{"replicas", 1},
        {"leaderWorkerTemplate",
         {{"size", 4}, {"leaderTemplate", pod_template()}, {"workerTemplate", pod_template()}}}}}};
}

/// Every place in it, the whole left out.
void add_places(const json& value, const json::json_pointer& at,
                std::vector<json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object())
    for (const auto& [key, entry] : value.items()) add_places(entry, at / key, places);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add_places(value[i], at / i, places);
}

std::vector<json> wrong_values() {
  json deep = "end";
  for (int level = 0; level < 90; ++level) deep = json::array({deep});
  return {nullptr,
          true,
          false,
          -1,
          0,
          3,
          1.5,
          1e300,
          UINT64_MAX,
          INT64_MIN,
          "",
          "two",
          "7",
          "a\n# b: c\n",
          "\u4e2d",
          std::string(3000, 'x'),
          json::array(),
          json::object(),
          deep,
          json::array({nullptr, 1, "a", json::object()}),
          {{"a\nb: c", {{"", 1}}}},
          {{"env", 1}}};
}

/// What is printed is one valid manifest, whatever was read; or it is said what is wrong.
bool is_answered(const json& object) {
  const auto job = convert_job(object);
  if (!job) return false;
  EXPECT_NE(job->complaint, "");
  if (!job->errors.empty()) return false;
  const std::string text = text_of(*job);
  const auto documents = parse_yaml(text, "printed");
  EXPECT_TRUE(documents) << describe(documents.error()) << text;
  if (!documents) return false;
  EXPECT_EQ(*documents, std::vector<json>{job->manifest}) << text;
  EXPECT_EQ(describe(validate_manifest(job->manifest)), "") << text;
  return true;
}

constexpr int kTriedOneOf = kIsSanitized ? 3 : 1;

int answered_with_one_place_wrong(const json& good) {
  std::vector<json::json_pointer> places;
  add_places(good, json::json_pointer(), places);
  int answered = 0;
  int turn = 0;
  for (const auto& place : places) {
    for (const json& wrong : wrong_values()) {
      if (++turn % kTriedOneOf != 0) continue;
      json bad = good;
      bad[place] = wrong;
      if (is_answered(bad)) ++answered;
      if (testing::Test::HasFailure())
        ADD_FAILURE() << place.to_string() << " = " << wrong.dump().substr(0, 99);
      if (testing::Test::HasFailure()) return answered;
    }
  }
  return answered;
}

TEST(JobConversion, a_job_becomes_a_training_job) {
  const auto job = convert_job(batch_job());
  ASSERT_TRUE(job && job->errors.empty());
  EXPECT_EQ(
      job->complaint,
      "Job \"train\" (apiVersion batch/v1) must be a TrainingJob (apiVersion kubebrain.io/v1)");
  json wanted = {
      {"apiVersion", "kubebrain.io/v1"},
      {"kind", "TrainingJob"},
      {"metadata", {{"name", "train"}, {"namespace", "ml"}, {"labels", {{"a", "b"}}}}},
      {"spec",
       {{"runPolicy",
         {{"maxRestarts", 4},
          {"activeDeadlineSeconds", 3600},
          {"ttlSecondsAfterFinished", 60},
          {"suspend", true}}},
        {"masterPort", 23456},
        {"nprocPerNode", 8},
        {"replicaSpecs", {{"Worker", {{"replicas", 2}, {"template", pod_template()}}}}}}}};
  json& pod = wanted["/spec/replicaSpecs/Worker/template/spec"_json_pointer];
  pod.erase("restartPolicy");
  pod.erase("hostname");
  pod["initContainers"][0]["env"] = {{{"name", "JOB_COMPLETION_INDEX"}, {"value", "$(RANK)"}}};
  pod["containers"][0]["env"] = {{{"name", "JOB_COMPLETION_INDEX"}, {"value", "$(RANK)"}},
                                 {{"name", "INDEX"}, {"value", "$(RANK)"}},
                                 {{"name", "MINE"}, {"value", "yes"}}};
  EXPECT_EQ(job->manifest, wanted) << job->manifest.dump(1);
}

TEST(JobConversion, master_and_workers_are_one_gang) {
  const auto job = convert_job(pytorch_job());
  ASSERT_TRUE(job && job->errors.empty());
  const json& spec = job->manifest["spec"];
  EXPECT_EQ(spec["replicaSpecs"]["Worker"]["replicas"], 4);
  EXPECT_EQ(spec["runPolicy"], json({{"cleanPodPolicy", "All"}, {"maxRestarts", 1}}));
  EXPECT_EQ(spec["nprocPerNode"], 8);
}

TEST(JobConversion, groups_of_other_kinds_are_one_gang) {
  const auto worker = [](const json& object) {
    const auto job = convert_job(object);
    EXPECT_TRUE(job && job->errors.empty()) << describe(job->errors);
    return job->manifest["spec"]["replicaSpecs"]["Worker"];
  };
  EXPECT_EQ(worker(train_job())["replicas"], 2);
  EXPECT_EQ(worker(train_job())["template"]["metadata"]["labels"], json({{"team", "vision"}}));
  EXPECT_EQ(worker(job_set())["replicas"], 8);
  EXPECT_EQ(convert_job(job_set())->manifest["spec"]["runPolicy"], json({{"maxRestarts", 5}}));
  EXPECT_EQ(worker(leader_worker_set())["replicas"], 4);
}

TEST(JobConversion, two_templates_are_no_gang) {
  json object = job_set();
  json& image =
      object["/spec/replicatedJobs/1/template/spec/template/spec/containers/0/image"_json_pointer];
  image = "other";
  EXPECT_TRUE(describe(convert_job(object)->errors)
                  .starts_with("spec.replicatedJobs[1].template.spec.template: is another one"));
  object = leader_worker_set();
  object["/spec/leaderWorkerTemplate/leaderTemplate/spec/hostname"_json_pointer] = "b";
  EXPECT_TRUE(describe(convert_job(object)->errors)
                  .starts_with("spec.leaderWorkerTemplate.leaderTemplate: is another one"));
}

TEST(JobConversion, what_is_wrong_with_a_trainer_is_told_by_its_own_fields) {
  json object = train_job();
  object["spec"]["trainer"]["env"] = {{{"name", 5}}};
  object["spec"]["trainer"]["resourcesPerNode"] = 7;
  EXPECT_EQ(describe(convert_job(object)->errors),
            "spec.trainer.env[0].name: is 5; it must be a text of 1 to 1024 characters\n"
            "spec.trainer.resourcesPerNode: is 7; it must be an object: limits and requests");
}

TEST(JobConversion, numbers_beyond_the_bounds_are_told) {
  json object = batch_job();
  object["spec"]["backoffLimit"] = INT32_MAX;
  object["spec"]["ttlSecondsAfterFinished"] = INT64_MAX;
  const auto job = convert_job(object);
  ASSERT_TRUE(job && job->errors.empty());
  EXPECT_EQ(job->manifest["spec"]["runPolicy"]["maxRestarts"], 1000);
  EXPECT_EQ(job->manifest["spec"]["runPolicy"]["ttlSecondsAfterFinished"], 31536000);
  EXPECT_EQ(job->notes[1], "spec.backoffLimit is 2147483647; maxRestarts is at most 1000");
}

TEST(JobConversion, what_is_wrong_is_told_by_the_fields_that_were_read) {
  json object = batch_job();
  object["spec"]["completions"] = 0;
  object["spec"]["backoffLimit"] = "four";
  auto job = convert_job(object);
  ASSERT_TRUE(job);
  EXPECT_EQ(describe(job->errors),
            "spec.completions: is 0; it must be a whole number from 1 to 10000\n"
            "spec.backoffLimit: is \"four\"; it must be a whole number from 0 to 1000");
  object = batch_job();
  object["spec"]["template"]["spec"].erase("containers");
  job = convert_job(object);
  ASSERT_TRUE(job);
  EXPECT_EQ(
      describe(job->errors),
      "spec.template.spec.containers: is missing; it must be a list of at least one container");
}

TEST(JobConversion, whatever_stands_there_is_answered) {
  EXPECT_TRUE(is_answered(batch_job()));
  EXPECT_TRUE(is_answered(pytorch_job()));
  EXPECT_GT(answered_with_one_place_wrong(batch_job()) * kTriedOneOf, 100);
  EXPECT_GT(answered_with_one_place_wrong(pytorch_job()) * kTriedOneOf, 100);
  for (const json& object : {train_job(), job_set(), leader_worker_set()}) {
    EXPECT_TRUE(is_answered(object));
    EXPECT_GT(answered_with_one_place_wrong(object) * kTriedOneOf, 20);
  }
}

TEST(JobConversion, a_flood_of_unknown_fields_is_told_in_a_few_lines) {
  json object = batch_job();
  for (int i = 0; i < 5000; ++i) object["spec"]["x" + std::to_string(i)] = i;
  const auto job = convert_job(object);
  ASSERT_TRUE(job && job->errors.empty());
  EXPECT_LT(job->notes.size(), 20U);
  EXPECT_TRUE(is_answered(object));
}

TEST(JobConversion, all_of_a_file_and_of_its_lists_are_converted) {
  const json list = {
      {"apiVersion", "v1"}, {"kind", "List"}, {"items", {batch_job(), {{"kind", "Pod"}}}}};
  EXPECT_EQ(convert_jobs({batch_job(), {{"kind", "Service"}}, list}).size(), 2U);
  EXPECT_EQ(convert_jobs({batch_job(), {{"kind", "TrainingJob"}}}).size(), 0U);
  EXPECT_EQ(convert_jobs({"a sentence", nullptr, 7}).size(), 0U);
}

}  // namespace
}  // namespace tj
