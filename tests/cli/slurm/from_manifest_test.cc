// What a manifest says becomes what sbatch is asked for; what has no place there is named by its
// path.
#include "cli/slurm/from_manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/validate.h"

namespace tj::slurm {
namespace {

using Json = nlohmann::json;

const std::string kContainer = "spec.replicaSpecs.Worker.template.spec.containers[0]";

Json manifest_of(const Json& container, const Json& pod = Json::object(),
                 const Json& spec = Json::object()) {
  Json main = {{"name", "main"}, {"image", "i"}, {"command", {"env"}}};
  main.merge_patch(container);
  Json pod_spec = pod;
  pod_spec["containers"] = Json::array({main});
  Json manifest = {{"apiVersion", "kubebrain.io/v1"},
                   {"kind", "TrainingJob"},
                   {"metadata", {{"name", "job"}}},
                   {"spec", spec}};
  manifest["spec"]["replicaSpecs"]["Worker"] = {{"replicas", 2},
                                                {"template", {{"spec", pod_spec}}}};
  return manifest;
}

BatchJob job_of(const Json& manifest, const SlurmPlace& place = {}) {
  EXPECT_EQ(describe(validate_manifest(manifest)), "");
  const auto job = from_manifest(manifest, place);
  EXPECT_TRUE(job) << describe(job.error());
  return job ? *job : BatchJob{};
}

std::string words_of(const BatchJob& job) {
  std::string text;
  for (const ShellText& word : job.command) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

bool is_said(const BatchJob& job, const std::string& begin) {
  return std::ranges::any_of(job.notes,
                             [&](const std::string& note) { return note.starts_with(begin); });
}

TEST(FromManifest, policies_become_restarts_and_times) {
  const Json spec = {
      {"masterPort", 2345},
      {"runPolicy",
       {{"suspend", true},
        {"activeDeadlineSeconds", 3600},
        {"maxRestarts", 7},
        {"ttlSecondsAfterFinished", 60}}},
      {"failurePolicy",
       {{"rules",
         {{{"action", "RestartIgnoringBudget"}, {"exitCodes", {42}}, {"signals", {7}}},
          {{"action", "Fail"}, {"causes", {"OOMKilled"}}},
          {{"action", "ExcludeNodeAndRestart"}, {"exitCodes", {44}}}}}}},
      {"successPolicy", "Worker0"},
      {"nodeLoss", {{"excludeSeconds", 60}}}};
  const BatchJob job =
      job_of(manifest_of(Json::object(), {{"terminationGracePeriodSeconds", 300}}, spec));
  EXPECT_EQ(job.node_count, 2);
  EXPECT_EQ(job.master_port, 2345);
  EXPECT_TRUE(job.is_held);
  EXPECT_EQ(job.deadline, std::chrono::seconds(3600));
  EXPECT_EQ(job.restarts_max, 7);
  EXPECT_EQ(job.signal_seconds, 300);
  ASSERT_EQ(job.exit_rules.size(), 2U);
  EXPECT_EQ(job.exit_rules[0].exit_codes, (std::vector<int>{42, 135}));
  for (const char* path :
       {"spec.runPolicy.suspend is --hold", "spec.runPolicy.ttlSecondsAfterFinished (60)",
        "spec.failurePolicy.rules[1].causes", "spec.failurePolicy.rules[2].action",
        "spec.successPolicy", "spec.nodeLoss.excludeSeconds"})
    EXPECT_TRUE(is_said(job, path)) << path;
}

TEST(FromManifest, resources_are_asked_of_each_node) {
  const BatchJob job =
      job_of(manifest_of({{"resources",
                           {{"requests", {{"cpu", "1500m"}, {"memory", "1Gi"}}},
                            {"limits", {{"cpu", 4}, {"nvidia.com/gpu", 8}, {"rdma/hca", 1}}}}}}));
  EXPECT_EQ(job.cpus_per_node, 2);
  EXPECT_EQ(job.memory_mib, 1024);
  EXPECT_EQ(job.gpus_per_node, 8);
  EXPECT_EQ(job.nproc_per_node, 8);
  EXPECT_TRUE(is_said(job, kContainer + ".resources.limits.rdma/hca (1) is left out"));
  EXPECT_TRUE(is_said(job, kContainer + ".resources.limits.cpu (4) is left out"));
  const BatchJob whole = job_of(manifest_of(Json::object()));
  EXPECT_FALSE(whole.cpus_per_node);
  EXPECT_TRUE(is_said(whole, kContainer + ".resources.requests.cpu is missing"));
}

const Json kMounts = {
    {"command", {"run", "--data=/data/a", "/database", "/out/x", "$(RANK)"}},
    {"env", {{{"name", "D"}, {"value", "/data"}}, {{"name", "E"}, {"value", "$(D)/$(RANK)"}}}},
    {"volumeMounts",
     {{{"name", "data"}, {"mountPath", "/data/"}, {"subPath", "sub"}},
      {{"name", "claim"}, {"mountPath", "/out"}},
      {{"name", "scratch"}, {"mountPath", "/scratch"}, {"readOnly", true}},
      {{"name", "shm"}, {"mountPath", "/dev/shm"}}}}};
const Json kVolumes = {{"volumes",
                        {{{"name", "data"}, {"hostPath", {{"path", "/lustre/$(RANK)"}}}},
                         {{"name", "claim"}, {"persistentVolumeClaim", {{"claimName", "c"}}}},
                         {{"name", "scratch"}, {"emptyDir", Json::object()}},
                         {{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}}}};

TEST(FromManifest, without_a_container_paths_become_folders_of_the_nodes) {
  const BatchJob job =
      job_of(manifest_of(kMounts, kVolumes), {.volumes = {{"claim", "/shared/out"}}});
  EXPECT_EQ(words_of(job),
            "run '--data=/lustre/$(RANK)/sub/a' /database /shared/out/x \"${RANK}\"");
  EXPECT_EQ(shell_word(job.env[0].second), "'/lustre/$(RANK)/sub'");
  EXPECT_EQ(shell_word(job.env[1].second), "\"${D}\"/\"${RANK}\"");
  ASSERT_EQ(job.node_folders.size(), 1U);
  EXPECT_EQ(shell_word(job.node_folders[0]), "/tmp/tj-\"${SLURM_JOB_ID}\"-scratch");
  EXPECT_TRUE(is_said(job, kContainer + ".volumeMounts[0] (/data): without a --container"));
  EXPECT_TRUE(is_said(job, kContainer + ".volumeMounts[3] is left out: it is the node's own"));
  const BatchJob unknown = job_of(manifest_of(kMounts, kVolumes));
  EXPECT_TRUE(is_said(unknown, kContainer + ".volumeMounts[1] is left out: its volume is none"));
  EXPECT_NE(words_of(unknown).find(" /out/x "), std::string::npos);
}

TEST(FromManifest, in_a_container_they_are_mounts) {
  const BatchJob job = job_of(manifest_of(kMounts, kVolumes),
                              {.runtime = Runtime::pyxis, .volumes = {{"claim", "/shared/out"}}});
  EXPECT_EQ(words_of(job), "run --data=/data/a /database /out/x \"${RANK}\"");
  ASSERT_EQ(job.mounts.size(), 3U);
  EXPECT_EQ(shell_word(job.mounts[0].folder), "'/lustre/$(RANK)/sub'");
  EXPECT_EQ(job.mounts[0].path, "/data");
  EXPECT_EQ(shell_word(job.mounts[2].folder), "/tmp/tj-\"${SLURM_JOB_ID}\"-scratch");
  EXPECT_TRUE(job.mounts[2].is_read_only);
  EXPECT_EQ(job.image, "i");
}

TEST(FromManifest, variables_come_from_the_job_or_must_be_given_to_sbatch) {
  const auto from = [](const char* name, const Json& source) {
    return Json{{"name", name}, {"valueFrom", source}};
  };
  const BatchJob job = job_of(manifest_of(
      {{"env",
        {from("POD", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}),
         from("NODE", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}),
         from("TOKEN", {{"secretKeyRef", {{"name", "hub"}, {"key", "token"}}}}),
         from("PROXY", {{"configMapKeyRef", {{"name", "p"}, {"key", "k"}, {"optional", true}}}}),
         from("CPUS", {{"resourceFieldRef", {{"resource", "limits.cpu"}}}}),
         Json{{"name", "with.dots"}, {"value", "x"}}}}}));
  ASSERT_EQ(job.env.size(), 2U);
  EXPECT_EQ(shell_word(job.env[0].second), "job-worker-\"${RANK}\"");
  EXPECT_EQ(shell_word(job.env[1].second), "\"${NODE_NAME}\"");
  EXPECT_EQ(job.needed_env, (std::vector<std::string>{"TOKEN"}));
  EXPECT_TRUE(is_said(job, kContainer + ".env[2].valueFrom.secretKeyRef is left out: TOKEN must"));
  EXPECT_TRUE(is_said(job, kContainer + ".env[3].valueFrom.configMapKeyRef"));
  EXPECT_TRUE(is_said(job, kContainer + ".env[4].valueFrom is left out"));
  EXPECT_TRUE(is_said(job, kContainer + ".env[5] is left out: a shell can't"));
}

TEST(FromManifest, each_field_without_an_equivalent_is_named) {
  const Json container = {{"livenessProbe", {{"tcpSocket", {{"port", 1}}}}},
                          {"ports", {{{"containerPort", 1}}}},
                          {"madeUp", 1}};
  const Json pod = {{"nodeSelector", {{"a", "b"}}},
                    {"priorityClassName", "high"},
                    {"initContainers", {{{"name", "init"}, {"image", "i"}}}},
                    {"fieldOfTheFuture", 1},
                    {"hostNetwork", true}};
  Json manifest = manifest_of(container, pod);
  manifest["metadata"]["labels"] = {{"queue", "q"}};
  const BatchJob job = job_of(manifest);
  const std::string pod_path = "spec.replicaSpecs.Worker.template.spec.";
  for (const std::string& path :
       {kContainer + ".livenessProbe", kContainer + ".ports", kContainer + ".madeUp (1)",
        pod_path + "nodeSelector", pod_path + "priorityClassName (\"high\")",
        pod_path + "initContainers", pod_path + "fieldOfTheFuture (1)",
        std::string("metadata.labels")})
    EXPECT_TRUE(is_said(job, path + " is left out: ")) << path;
  EXPECT_FALSE(is_said(job, pod_path + "hostNetwork"));
}

TEST(FromManifest, what_no_script_can_do_is_an_error) {
  const auto said = [](const Json& container, const SlurmPlace& place = {}) {
    const auto job = from_manifest(manifest_of(container), place);
    return job ? "" : job.error().message;
  };
  EXPECT_TRUE(said({{"command", nullptr}}).starts_with(kContainer + ".command: is missing"));
  EXPECT_TRUE(
      said({{"command", {"a\x1b[2J"}}}).starts_with(kContainer + ".command[0]: has a control"));
  EXPECT_TRUE(
      said({{"command", {std::string("a\0b", 3)}}}).starts_with(kContainer + ".command[0]"));
  EXPECT_TRUE(said({{"image", nullptr}}, {.runtime = Runtime::apptainer})
                  .starts_with(kContainer + ".image: must be"));
  EXPECT_TRUE(said({{"volumeMounts", {{{"name", "v"}, {"mountPath", "/v"}}}}})
                  .starts_with(kContainer + ".volumeMounts[0]: names the volume \"v\""));
  EXPECT_TRUE(said({{"volumeMounts", {{{"name", "v"}, {"mountPath", "/v"}, {"subPath", "../x"}}}}})
                  .starts_with(kContainer + ".volumeMounts[0]: has a subPath"));
  EXPECT_TRUE(said({{"volumeMounts", {{{"name", "v"}, {"mountPath", "/v:w"}}}}},
                   {.runtime = Runtime::pyxis, .volumes = {{"v", "/x"}}})
                  .starts_with(kContainer + ".volumeMounts[0]: has a \":\""));
}

}  // namespace
}  // namespace tj::slurm
