#include "operator/api/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tj {
namespace {
using nlohmann::json;

const json kJob = json::parse(R"({
  "apiVersion": "kubebrain.io/v1", "kind": "TrainingJob",
  "metadata": {"name": "mnist", "namespace": "team", "uid": "u-1", "resourceVersion": "7", "generation": 2},
  "spec": {"replicaSpecs": {"Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "t", "image": "i"}]}}}}}})");

TEST(JobJson, reads_the_spec_and_keeps_the_template_as_it_is) {
  const auto job = job_from_json(kJob);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->meta.uid, "u-1");
  EXPECT_EQ(job->meta.generation, 2);
  EXPECT_EQ(job->spec.worker_count, 3);
  EXPECT_EQ(json::parse(job->spec.pod_template_json),
            kJob["spec"]["replicaSpecs"]["Worker"]["template"]);
  EXPECT_FALSE(job->spec_error);
}

TEST(JobJson, keeps_a_spec_that_cannot_be_read_as_an_error) {
  json object = kJob;
  object["spec"]["replicaSpecs"]["Worker"].erase("template");
  const auto job = job_from_json(object);
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(job->spec_error);
  EXPECT_NE(job->spec_error->find("spec.replicaSpecs.Worker.template"), std::string::npos)
      << *job->spec_error;
}

TEST(JobJson, reads_what_is_out_of_bounds_as_the_nearest_that_is_allowed) {
  json object = kJob;
  object["spec"]["replicaSpecs"]["Worker"]["replicas"] = 2'000'000'000'000;
  object["spec"]["runPolicy"] = {{"maxRestarts", -1},
                                 {"activeDeadlineSeconds", std::numeric_limits<long long>::max()},
                                 {"cleanPodPolicy", "Some"}};
  const auto job = job_from_json(object);
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(job->spec_error);
  EXPECT_EQ(job->spec.worker_count, 10'000);
  EXPECT_EQ(job->spec.run.max_restarts, 0);
  EXPECT_EQ(job->spec.run.active_deadline, std::chrono::hours{24 * 365});
  EXPECT_EQ(job->spec.run.clean_pods, CleanPods::running);
}

TEST(JobJson, survives_any_shape_of_object) {
  for (const char* text :
       {"{}", "[]", "null", "3", R"({"metadata": 3})", R"({"metadata": {"name": 3}})"}) {
    EXPECT_FALSE(job_from_json(json::parse(text)).ok()) << text;
  }
  for (const char* spec :
       {"null", "3", "[]", R"({"replicaSpecs": []})", R"({"replicaSpecs": {"Worker": null}})",
        R"({"replicaSpecs": {"Worker": {"replicas": "two", "template": 3}}})"}) {
    json object = kJob;
    object["spec"] = json::parse(spec);
    object["status"] =
        json::parse(R"({"phase": 3, "conditions": [3, null], "replicaStatuses": []})");
    const auto job = job_from_json(object);
    ASSERT_TRUE(job.ok()) << spec;
    EXPECT_TRUE(job->spec_error) << spec;
  }
}

TEST(JobJson, status_survives_the_way_to_the_server_and_back) {
  const TimePoint time{std::chrono::seconds{1'800'000'000}};
  auto job = *job_from_json(kJob);
  job.status = {.phase = Phase::failed,
                .reason = "WorkerFailed",
                .message = "worker 1 failed first",
                .observed_generation = 2,
                .attempt = 4,
                .restarts = 4,
                .restarts_counted = 2,
                .restarts_uncounted = 1,
                .restart_step = 100,
                .quick_restarts = 2,
                .furthest_step = 110,
                .node_failures = {{.node = "n1", .count = 2, .refused_time = time},
                                  {.node = "n2", .count = 1, .refused_time = {}}},
                .ready_text = "0/3",
                .selector = "job-name=mnist",
                .start_time = time,
                .completion_time = time,
                .workers = {.desired = 3, .active = 1, .ready = 0, .succeeded = 1, .failed = 1},
                .first_failure = FirstFailure{.rank = 1,
                                              .node = "n1",
                                              .exit_code = 137,
                                              .reason = "OOMKilled",
                                              .message = "m",
                                              .finished_at = time,
                                              .step = 119},
                .progress = JobProgress{.attempt = 4,
                                        .step = 120,
                                        .total_steps = 1000,
                                        .phase = "step",
                                        .eta_seconds = 234,
                                        .loss = 3.125,
                                        .tokens_per_second = 1e9,
                                        .mfu = 0.41,
                                        .updated_at = time},
                .last_checkpoint = LastCheckpoint{100, "/out/step-100", time},
                .conditions = {{.type = "Failed",
                                .status = true,
                                .reason = "WorkerFailed",
                                .message = "m",
                                .observed_generation = 2,
                                .last_transition_time = time}}};
  job.status.succeeded_ranks = RankSet::parse("0,2");
  const json patch = status_patch(job, job.status);
  EXPECT_EQ(patch["metadata"]["resourceVersion"], "7");
  json object = kJob;
  object.merge_patch(json{{"status", patch["status"]}});
  EXPECT_EQ(job_from_json(object)->status, job.status);
  const JobStatus fresh;
  object.merge_patch(json{{"status", status_patch(job, fresh)["status"]}});
  EXPECT_EQ(job_from_json(object)->status, fresh) << "an absent value is taken away by the patch";
}

TEST(JobJson, shows_progress_for_people) {
  const auto text = [](long long step, long long total) {
    return to_text(JobProgress{.step = step, .total_steps = total});
  };
  EXPECT_EQ(text(120, 1000), "120/1000 (12%)");
  EXPECT_EQ(text(999, 1000), "999/1000 (99%)");
  EXPECT_EQ(text(1500, 1000), "1500/1000 (100%)");
  EXPECT_EQ(text(120, 0), "120");
  const long long most = std::numeric_limits<long long>::max();
  EXPECT_EQ(percent_of(JobProgress{.step = most, .total_steps = most}), 100);
}

TEST(JobJson, reads_the_progress_port_of_the_job_then_of_its_pods) {
  const auto port_with = [](const json& of_job, const json& of_pods) {
    json object = kJob;
    if (!of_job.is_null()) object["metadata"]["annotations"]["kubebrain.io/progress-port"] = of_job;
    json& pods = object["spec"]["replicaSpecs"]["Worker"]["template"];
    if (!of_pods.is_null()) pods["metadata"]["annotations"]["kubebrain.io/progress-port"] = of_pods;
    return job_from_json(object)->progress_port;
  };
  EXPECT_EQ(port_with(nullptr, nullptr), 29600);
  EXPECT_EQ(port_with("8000", nullptr), 8000);
  EXPECT_EQ(port_with(nullptr, "8001"), 8001);
  EXPECT_EQ(port_with("8000", "off"), 8000);
  for (const char* off : {"off", "", "0", "65536", "no", "80 "}) {
    EXPECT_EQ(port_with(nullptr, off), std::nullopt) << off;
  }
}

TEST(JobJson, in_the_network_of_a_node_only_a_port_that_was_asked_for_is_read) {
  const auto port_with = [](const json& host_network, const char* annotation) {
    json object = kJob;
    object["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = host_network;
    if (annotation != nullptr)
      object["metadata"]["annotations"]["kubebrain.io/progress-port"] = annotation;
    return job_from_json(object)->progress_port;
  };
  EXPECT_EQ(port_with(true, nullptr), std::nullopt) << "29600 of a node may be anybody's";
  EXPECT_EQ(port_with(true, "29600"), 29600);
  EXPECT_EQ(port_with(true, "off"), std::nullopt);
  EXPECT_EQ(port_with(false, nullptr), 29600);
  EXPECT_EQ(port_with("true", nullptr), 29600) << "the server refuses such a pod";
}

TEST(JobJson, tells_of_an_annotation_that_is_wrong) {
  json object = kJob;
  EXPECT_EQ(job_from_json(object)->annotation_error, std::nullopt);
  object["metadata"]["annotations"]["kubebrain.io/progress-port"] = "off";
  EXPECT_EQ(job_from_json(object)->annotation_error, std::nullopt);
  object["metadata"]["annotations"]["kubebrain.io/progress-port"] = "http";
  EXPECT_EQ(
      job_from_json(object)->annotation_error,
      "metadata.annotations.kubebrain.io/progress-port: is \"http\"; it must be a port from 1 "
      "to 65535, in quotes, or \"off\"");
}

json pod_with(const char* status) {
  json pod = json::parse(
      R"({"metadata": {"name": "mnist-worker-1", "namespace": "team", "uid": "p-1", "resourceVersion": "9",
    "labels": {"kubebrain.io/trainingjob": "mnist", "kubebrain.io/worker-index": "1", "kubebrain.io/attempt": "2"},
    "ownerReferences": [{"uid": "x"}, {"uid": "u-1", "controller": true}]},
    "spec": {"nodeName": "n1", "containers": [{"name": "training"}, {"name": "a-sidecar"}]}})");
  pod["status"] = json::parse(status);
  return pod;
}

TEST(TrimPod, reads_identity) {
  const auto pod = trim_pod(pod_with("{}"));
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(pod->job_name, "mnist");
  EXPECT_EQ(pod->worker_index, 1);
  EXPECT_EQ(pod->attempt, 2);
  EXPECT_EQ(pod->meta.controller_uid, "u-1");
  EXPECT_EQ(pod->node, "n1");
}

TEST(TrimPod, judges_by_the_main_container_not_by_its_sidecars) {
  const auto pod = trim_pod(pod_with(R"({"phase": "Running", "containerStatuses": [
    {"name": "a-sidecar", "ready": true, "state": {"running": {}}},
    {"name": "training", "ready": false, "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "last words",
      "finishedAt": "2026-11-21T01:10:40Z"}}}]})"));
  ASSERT_TRUE(pod->exit);
  EXPECT_EQ(pod->exit->exit_code, 3);
  EXPECT_EQ(pod->exit->message, "last words");
  EXPECT_FALSE(pod->ready);
}

TEST(TrimPod, says_why_it_waits) {
  const auto unschedulable = trim_pod(
      pod_with(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
    "reason": "Unschedulable", "message": "0/2 nodes are available"}]})"));
  EXPECT_EQ(unschedulable->waiting_reason, "Unschedulable");
  const auto pulling = trim_pod(pod_with(R"({"phase": "Pending", "containerStatuses": [
    {"name": "training", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}}]})"));
  EXPECT_EQ(pulling->waiting_reason, "ImagePullBackOff");
  const auto creating = trim_pod(pod_with(R"({"phase": "Pending", "containerStatuses": [
    {"name": "training", "state": {"waiting": {"reason": "ContainerCreating"}}}]})"));
  EXPECT_EQ(creating->waiting_reason, "");
}

TEST(TrimPod, takes_a_failed_init_container_for_the_exit) {
  const auto pod = trim_pod(pod_with(R"({"phase": "Failed", "initContainerStatuses": [
    {"name": "fetch", "state": {"terminated": {"exitCode": 9, "reason": "Error"}}}]})"));
  ASSERT_TRUE(pod->exit);
  EXPECT_EQ(pod->exit->exit_code, 9);
}

TEST(TrimPod, survives_labels_that_are_no_numbers) {
  json object = pod_with("{}");
  object["metadata"]["labels"]["kubebrain.io/worker-index"] = "one";
  object["metadata"]["labels"]["kubebrain.io/attempt"] = "-1";
  EXPECT_EQ(trim_pod(object)->worker_index, -1);
  EXPECT_EQ(trim_pod(object)->attempt, -1);
}

}  // namespace
}  // namespace tj
