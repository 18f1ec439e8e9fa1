// Causes for which a job waits: of the job itself, of nodes, of containers.
#include "tests/cli/explain/explain_site.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// What keeps pods from being made.

TEST(ExplainControl, an_operator_that_is_not_there) {
  World world;
  world.create_job("a", 1);
  Gathered all{.job = world.job("a"), .pods = {}, .events = {}, .nodes = {}};
  const auto created = *parse_time(all.job["metadata"]["creationTimestamp"].get<std::string>());
  EXPECT_THAT(explain(*read_evidence(all, created + 10s)), testing::IsEmpty()) << "it has 30 s";
  EXPECT_EQ(explain(*read_evidence(all, created + 40s)).at(0).cause, "OperatorSilent");
  all.job["status"] = {
      {"phase", "Running"}, {"reason", "WorkersRunning"}, {"observedGeneration", 1}};
  all.job["metadata"]["generation"] = 2;
  const auto findings = explain(*read_evidence(all, created + 40s));
  EXPECT_THAT(findings.at(0).seen.what, HasSubstr("generation 2, observed 1"));
}

TEST(ExplainControl, another_controller_looks_after_it) {
  Site site(1, with_policy({{"managedBy", "kueue.x-k8s.io/multikueue"}}));
  site.pass(1min);
  EXPECT_THAT(site.causes(), ElementsAre("ManagedElsewhere"));
}

TEST(ExplainControl, a_spec_that_is_wrong) {
  Site site(1, with_policy({{"maxRestarts", -1}}));
  EXPECT_THAT(site.found("InvalidSpec"), HasSubstr("maxRestarts"));
}

TEST(ExplainControl, a_job_that_is_suspended) {
  Site site(1, with_policy({{"suspend", true}}));
  EXPECT_THAT(site.causes(), ElementsAre("Suspended"));
}

TEST(ExplainControl, a_name_that_is_taken) {
  World world;
  world.start_controller();
  const json foreign{
      {"metadata", {{"name", "a-worker-0"}, {"labels", {{"kubebrain.io/trainingjob", "a"}}}}},
      {"spec", {{"containers", json::array({{{"name", "x"}}})}}}};
  ASSERT_TRUE(world.objects().create(Resource::pods, "default", foreign).ok());
  world.create_job("a", 1);
  world.pass(5s);
  const auto evidence =
      read_evidence({.job = world.job("a"), .pods = {}, .events = {}, .nodes = {}},
                    *parse_time("2026-11-21T02:00:00Z"));
  const auto findings = explain(*evidence);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, "NameConflict");
}

TEST(ExplainControl, what_the_api_server_refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {"QuotaExceeded",
       "pods \"a-worker-0\" is forbidden: exceeded quota: team, requested: "
       "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=0, limited: "
       "requests.nvidia.com/gpu=4"},
      {"LimitRange",
       "pods \"a-worker-0\" is forbidden: maximum cpu usage per Container is 2, but limit is 4"},
      {"PodSecurity",
       "pods \"a-worker-0\" is forbidden: violates PodSecurity \"restricted:latest\": "
       "allowPrivilegeEscalation != false"},
      {"AdmissionDenied",
       "admission webhook \"images.example.com\" denied the request: image must come from "
       "registry.example.com"},
      {"RightMissing",
       "pods is forbidden: User \"system:serviceaccount:trainingjob-system:operator\" cannot "
       "create resource \"pods\" in API group \"\" in the namespace \"default\""},
      {"CreateRefused",
       "pods \"a-worker-0\" is forbidden: error looking up service account default/trainer: "
       "serviceaccount \"trainer\" not found"},
  };
  for (const auto& [cause, message] : cases) {
    Site site(1, with_policy({{"suspend", true}}));
    site.refuse(message);
    ASSERT_TRUE(site.objects()
                    .patch(Resource::training_jobs, {"default", "a"},
                           {{"spec", {{"runPolicy", {{"suspend", false}}}}}})
                    .ok());
    site.pass(5s);
    EXPECT_THAT(site.causes(), ElementsAre(cause)) << message << site.job("a")["status"].dump(1);
    EXPECT_THAT(site.found(cause), HasSubstr(message));
  }
}

TEST(ExplainControl, a_gang_whose_turn_has_not_come_and_a_bug) {
  Site site(1);
  json job = site.job("a");
  job["status"]["phase"] = "Pending";
  job["status"]["reason"] = "CreatingWorkers";
  job["status"]["startTime"] = format_time(site.now() - 60s);
  EXPECT_EQ(explain(*read_evidence({.job = job, .pods = {}, .events = {}, .nodes = {}}, site.now()))
                .at(0)
                .cause,
            "CreatingWorkers");
  job["status"]["reason"] = "InternalError";
  EXPECT_EQ(explain(*read_evidence({.job = job, .pods = {}, .events = {}, .nodes = {}}, site.now()))
                .at(0)
                .cause,
            "OperatorBug");
}

// What keeps workers from a node.

TEST(ExplainPlacement, what_the_scheduler_says) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"NotEnoughGpu"},
       "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are "
       "available: 2 No preemption victims found for incoming pod."},
      {{"NotEnoughCpu", "NotEnoughMemory"},
       "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
      {{"NotEnoughStorage"}, "0/2 nodes are available: 2 Insufficient ephemeral-storage."},
      {{"TooManyPods"}, "0/2 nodes are available: 2 Too many pods."},
      {{"TaintNotTolerated"},
       "0/2 nodes are available: 2 node(s) had untolerated taint "
       "{node-role.kubernetes.io/control-plane: }."},
      {{"AffinityMismatch"},
       "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
      {{"NodeUnschedulable"}, "0/2 nodes are available: 2 node(s) were unschedulable."},
      {{"VolumeUnbound"},
       "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/2 "
       "nodes are available: 2 Preemption is not helpful for scheduling."},
      {{"VolumeUnbound"}, "0/2 nodes are available: persistentvolumeclaim \"data\" not found."},
      {{"VolumeElsewhere"},
       "0/2 nodes are available: 2 node(s) had volume node affinity conflict."},
      {{"TopologySpread"},
       "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."},
      {{"Unschedulable"}, "0/2 nodes are available: 2 node(s) said something new."},
  };
  for (const auto& [causes, message] : cases) {
    Site site;
    site.unschedulable(message);
    EXPECT_EQ(site.causes(), causes) << message;
    EXPECT_THAT(site.found(causes.front()), HasSubstr("pod a-worker-0 and 1 more: "));
    EXPECT_THAT(site.found(causes.front()), HasSubstr("for workers 0-1: 0/2 nodes"));
  }
}

TEST(ExplainPlacement, a_gate_and_a_scheduler_that_is_not_there) {
  Site gated;
  gated.unschedulable("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated");
  EXPECT_THAT(gated.causes(), ElementsAre("Gated"));
  Site alone;
  alone.pass(2min);
  EXPECT_THAT(alone.causes(), ElementsAre("NotScheduled"));
}

TEST(ExplainPlacement, nodes_that_are_left_out) {
  Site site(
      2, {{"failurePolicy",
           {{"rules", json::array({{{"action", "ExcludeNodeAndRestart"}, {"exitCodes", {7}}}})}}}});
  site.start_all();
  site.end("a-worker-1", 7, "");
  site.unschedulable("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
  EXPECT_THAT(site.found("NodesExcluded"), HasSubstr("n2"));
  EXPECT_THAT(site.causes(), Contains("NotEnoughGpu"));
}

TEST(ExplainPlacement, a_pod_that_does_not_go) {
  Site site;
  site.start_all();
  site.keep_terminating_pods(true);
  site.end("a-worker-1", 3, "");
  site.pass(5min);
  EXPECT_THAT(site.found("StuckTerminating"),
              HasSubstr("pod a-worker-0: it should have ended, and is still there on node n1"));
}

// What keeps containers from running.

TEST(ExplainStart, what_the_kubelet_says_of_containers) {
  struct Case {
    const char* cause;
    const char* reason;
    const char* message;
  };
  const Case cases[] = {
      {"ImageNotFound", "ImagePullBackOff",
       "Back-off pulling image \"busybox:no\": ErrImagePull: rpc error: code = NotFound desc = "
       "failed to resolve reference \"docker.io/library/busybox:no\": "
       "docker.io/library/busybox:no: not found"},
      {"ImageDenied", "ErrImagePull",
       "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized"},
      {"RegistryUnreachable", "ErrImagePull",
       "dial tcp: lookup registry.example.com: no such host"},
      {"RegistryUnreachable", "ErrImagePull",
       "failed to do request: Head \"https://registry.local/v2/none/manifests/1\": dial tcp: "
       "lookup registry.local: Temporary failure in name resolution"},
      {"ImagePullFailed", "ImagePullBackOff", "Back-off pulling image \"x\""},
      {"ImageNameInvalid", "InvalidImageName",
       "Failed to apply default image tag \"UPPER\": couldn't parse image name"},
      {"ConfigMapMissing", "CreateContainerConfigError", "configmap \"settings\" not found"},
      {"SecretMissing", "CreateContainerConfigError", "secret \"keys\" not found"},
      {"ContainerNotCreated", "CreateContainerConfigError",
       "container has runAsNonRoot and image will run as root"},
      {"ContainerNotCreated", "RunContainerError",
       "failed to create containerd task: no such device"},
      {"InitContainerCrashing", "CrashLoopBackOff", "back-off 10s restarting failed container"},
  };
  for (const Case& each : cases) {
    Site site;
    site.place_all();
    site.waiting("a-worker-1", each.reason, each.message);
    EXPECT_THAT(site.causes(), ElementsAre(each.cause)) << each.message;
    EXPECT_THAT(site.found(each.cause), HasSubstr("for worker 1 on node n2: "));
  }
}

TEST(ExplainStart, what_only_events_say) {
  struct Case {
    const char* cause;
    const char* reason;
    const char* message;
  };
  const Case cases[] = {
      {"ConfigMapMissing", "FailedMount",
       "MountVolume.SetUp failed for volume \"settings\" : configmap \"settings\" not found"},
      {"SecretMissing", "FailedMount",
       "MountVolume.SetUp failed for volume \"keys\" : secret \"keys\" not found"},
      {"VolumeNotMounted", "FailedMount",
       "MountVolume.SetUp failed for volume \"data\" : hostPath type check failed: /mnt/data is "
       "not a directory"},
      {"SandboxFailed", "FailedCreatePodSandBox",
       "Failed to create pod sandbox: plugin type=\"bridge\" failed (add): no IP addresses "
       "available"},
  };
  for (const Case& each : cases) {
    Site site;
    site.place_all();
    site.event("a-worker-0", each.reason, each.message);
    EXPECT_THAT(site.causes(), ElementsAre(each.cause)) << each.message;
  }
}

TEST(ExplainStart, an_init_container_that_fails_or_goes_on_and_on) {
  Site site(1, with_policy({{"maxRestarts", 0}}));
  site.place_all();
  const json failed{
      {"name", "prepare"},
      {"state",
       {{"terminated",
         {{"exitCode", 2}, {"message", "no data"}, {"finishedAt", format_time(site.now())}}}}}};
  site.patch_pod("a-worker-0",
                 {{"phase", "Failed"}, {"initContainerStatuses", json::array({failed})}});
  EXPECT_EQ(site.found("InitContainerFailed"),
            "pod a-worker-0: init container prepare ended with exit code 2: no data");
  EXPECT_THAT(site.causes(), ElementsAre("InitContainerFailed", "NotRetried"));
  Site slow(1);
  slow.place_all();
  const json running{{"name", "prepare"},
                     {"state", {{"running", {{"startedAt", format_time(slow.now())}}}}}};
  slow.patch_pod("a-worker-0", {{"initContainerStatuses", json::array({running})}});
  slow.pass(2min);
  EXPECT_THAT(slow.found("InitContainerRunning"),
              HasSubstr("init container prepare of worker 0 still runs"));
}

}  // namespace
}  // namespace tj
