// Causes for which a job restarted or failed, and how its run goes.
#include "tests/cli/explain/explain_site.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Workers that were taken away.

TEST(ExplainLoss, a_node_that_dies) {
  Site site;
  site.start_all();
  site.silence_node("n2");
  site.pass(35s);
  EXPECT_THAT(site.causes(), testing::IsSupersetOf({"NodeNotReady", "NodeLost", "Restarted"}));
  EXPECT_EQ(site.findings().at(0).cause, "NodeNotReady") << "it comes first in the chain";
  EXPECT_THAT(site.found("NodeLost"), HasSubstr("node n2: node n2 has not been heard of since"));
  EXPECT_THAT(site.found("NodeLost"), HasSubstr("worker 1 was lost with it"));
}

TEST(ExplainLoss, pods_that_are_disrupted) {
  const std::pair<const char*, const char*> cases[] = {{"Preempted", "PreemptionByScheduler"},
                                                       {"Drained", "EvictionByEvictionAPI"},
                                                       {"Evicted", "TerminationByKubelet"},
                                                       {"Disrupted", "SomethingElse"}};
  for (const auto& [cause, reason] : cases) {
    Site site;
    site.start_all();
    site.patch_pod("a-worker-1", {{"phase", "Failed"},
                                  {"conditions", json::array({{{"type", "DisruptionTarget"},
                                                               {"status", "True"},
                                                               {"reason", reason},
                                                               {"message", "it had to go"}}})}});
    EXPECT_THAT(site.causes(), testing::IsSupersetOf({cause, "Restarted"})) << reason;
    EXPECT_THAT(site.found(cause), HasSubstr("it had to go"));
  }
  Site site;
  site.start_all();
  site.patch_pod("a-worker-1",
                 {{"phase", "Failed"},
                  {"reason", "NodeShutdown"},
                  {"message", "Pod was terminated in response to imminent node shutdown."}});
  EXPECT_THAT(site.causes(), Contains("NodeShutdown"));
}

TEST(ExplainLoss, a_pod_that_is_deleted_and_one_that_is_rejected) {
  Site site;
  site.start_all();
  ASSERT_TRUE(site.objects().remove(Resource::pods, {"default", "a-worker-1"}).ok());
  site.pass(3s);
  EXPECT_THAT(site.found("PodDeleted"), HasSubstr("was deleted while the job ran"));
  Site other;
  other.place_all();
  other.patch_pod("a-worker-1", {{"phase", "Failed"},
                                 {"reason", "UnexpectedAdmissionError"},
                                 {"message", "Allocate failed due to no healthy devices present"}});
  EXPECT_THAT(other.found("PodRejected"), HasSubstr("no healthy devices present"));
}

TEST(ExplainLoss, a_node_that_is_short_of_something) {
  Site site;
  site.start_all();
  const json pressure{{"type", "MemoryPressure"},
                      {"status", "True"},
                      {"message", "kubelet has insufficient memory available"},
                      {"lastTransitionTime", format_time(site.now())}};
  ASSERT_TRUE(site.objects()
                  .patch_status(Resource::nodes, {"", "n2"},
                                {{"status", {{"conditions", json::array({pressure})}}}})
                  .ok());
  EXPECT_THAT(site.found("NodePressure"),
              HasSubstr("node n2: its condition MemoryPressure is True"));
}

// Workers that ended by themselves.

std::string last_words(const std::string& reason, const std::string& message) {
  return json{{"reason", reason}, {"message", message}, {"attempt", 0}}.dump();
}

TEST(ExplainExit, what_workers_say_when_they_end) {
  struct Case {
    const char* cause;
    int code;
    std::string message;
  };
  const Case cases[] = {
      {"GpuOutOfMemory", 70, last_words("OutOfMemory", "out of memory with --accumulation 1")},
      {"GpuOutOfMemory", 1,
       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."},
      {"LossNotFinite", 70, last_words("LossNotFinite", "the loss of step 7 is nan")},
      {"DiskFull", 74, last_words("SaveFailed", "/out: No space left on device")},
      {"PortInUse", 69,
       last_words("PortInUse",
                  "port 29500 is already in use on this machine; another MASTER_PORT is needed")},
      {"NameNotResolved", 69,
       last_words("RendezvousFailed", "a-worker-0.a: the name does not resolve (no such host)")},
      {"MasterUnreachable", 69,
       last_words("RendezvousFailed",
                  "no answer: nothing comes back: a firewall or a NetworkPolicy drops what goes to "
                  "that port")},
      {"NcclFailed", 70, last_words("NcclFailed", "ncclAllReduce: unhandled system error")},
      {"WrongWorldSize", 78, last_words("WorldSizeMismatch", "was started with WORLD_SIZE 3")},
      {"RendezvousFailed", 69,
       last_words("RendezvousFailed", "3 of 4 ranks came within 300 s; rank 2 is missing")},
      {"BadData", 65, last_words("BadData", "/data is empty")},
      {"InputOutputFailed", 74, last_words("DataLost", "/data/7.tok can't be read any more")},
      {"BadConfiguration", 78, last_words("BadConfig", "--lr must be above 0")},
      {"BadConfiguration", 64, ""},
      {"WrongCommand", 127, "sh: train: command not found"},
      {"LibraryMissing", 1, "ModuleNotFoundError: No module named 'deepspeed'"},
      {"NoGpu", 1, "RuntimeError: Found no NVIDIA driver on your system."},
      {"GpuFault", 1, "CUDA error: an illegal memory access was encountered"},
      {"SharedMemoryFull", 1, "RuntimeError: unable to write to file </torch_1>: /dev/shm is full"},
      {"PeerLost", 76, last_words("PeerLost", "rank 1 went away")},
      {"Crashed", 139, ""},
      {"Killed", 137, ""},
      {"PythonError", 1,
       "Traceback (most recent call last):\n  File \"train.py\", line 1\nKeyError: 'x'"},
      {"ProgramFailed", 3, "bye"},
  };
  for (const Case& each : cases) {
    Site site(1, with_policy({{"maxRestarts", 0}}));
    site.start_all();
    site.end("a-worker-0", each.code, each.message);
    EXPECT_THAT(site.causes(), testing::IsSupersetOf({each.cause}))
        << each.message << each.code << " " << testing::PrintToString(site.causes());
    EXPECT_THAT(site.found(each.cause),
                HasSubstr("pod a-worker-0 of attempt 0: worker 0 on node n1 failed first"));
    int of_exits = 0;
    for (const Rule& rule : exit_rules()) of_exits += site.found(rule.cause).empty() ? 0 : 1;
    EXPECT_EQ(of_exits, 1) << each.message;
  }
}

TEST(ExplainExit, a_worker_that_saved_and_was_interrupted) {
  Site site(1);
  site.start_all();
  site.end("a-worker-0", 75, last_words("Interrupted", "asked to stop by SIGTERM"));
  EXPECT_THAT(site.causes(), ElementsAre("Interrupted", "Restarted"));
}

TEST(ExplainExit, a_worker_out_of_memory) {
  Site site(1);
  site.start_all();
  site.end("a-worker-0", 137, "", "OOMKilled");
  EXPECT_THAT(site.causes(), ElementsAre("OutOfMemory", "Restarted"));
}

// What became of it.

TEST(ExplainRun, a_run_that_hangs) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  world.options().progress = &world.progress();
  world.start_controller();
  world.create_job("a", 2, with_policy({{"heartbeatTimeoutSeconds", 60}, {"maxRestarts", 0}}));
  world.pass(1s);
  double age = 0;
  world.progress().answer("a", [&] {
    Progress document;
    document.phase = "step";
    document.step = 120;
    document.steps = 1000;
    document.heartbeat_age_seconds = age += 10;
    document.stalled.push_back({1, "n", "step", age});
    return PollAnswer{PollResult::read, document};
  });
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Failed"; }));
  const auto findings = explain(
      *read_evidence({.job = world.job("a"), .pods = {}, .events = {}, .nodes = {}}, TimePoint{}));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].cause, "Hung");
  EXPECT_THAT(findings[0].seen.what, HasSubstr("worker 1"));
}

TEST(ExplainRun, deadlines_and_budgets) {
  Site late(2, with_policy({{"startDeadlineSeconds", 60}, {"maxRestarts", 0}}));
  late.pass(2min);
  EXPECT_THAT(late.causes(), ElementsAre("StartDeadlineExceeded", "NotRetried"));
  Site slow(1, with_policy({{"activeDeadlineSeconds", 60}}));
  slow.start_all();
  slow.pass(2min);
  EXPECT_THAT(slow.causes(), ElementsAre("DeadlineExceeded"));
  Site unlucky(1, with_policy({{"maxRestarts", 1}}));
  for (int attempt = 0; attempt < 2; ++attempt) {
    unlucky.start_all();
    unlucky.end("a-worker-0", 3, "bye");
    unlucky.pass(2s);
  }
  EXPECT_THAT(unlucky.causes(), ElementsAre("ProgramFailed", "RestartsExhausted"));
  EXPECT_THAT(unlucky.found("ProgramFailed"), HasSubstr("exit code 3: bye"));
  EXPECT_THAT(unlucky.found("RestartsExhausted"),
              AllOf(HasSubstr("runPolicy.maxRestarts, 1, is used up"), Not(HasSubstr("bye"))));
}

TEST(ExplainRun, a_restart_that_waits_and_a_change_of_the_spec) {
  Site site(1, with_policy({{"restartBackoffSeconds", 300}}));
  site.start_all();
  site.end("a-worker-0", 3, "bye");
  EXPECT_THAT(site.causes(), ElementsAre("ProgramFailed", "Restarted", "WaitsBeforeRestart"));
  EXPECT_THAT(site.found("Restarted"), HasSubstr("the gang will be restarted as attempt 1"));
  Site resized(1);
  resized.start_all();
  resized.keep_terminating_pods(true);
  ASSERT_TRUE(resized.objects()
                  .patch(Resource::training_jobs, {"default", "a"},
                         {{"spec", {{"replicaSpecs", {{"Worker", {{"replicas", 2}}}}}}}})
                  .ok());
  resized.pass(1s);
  EXPECT_THAT(resized.found("SpecChanged"), HasSubstr("from 1 to 2"));
}

TEST(ExplainRun, progress_that_stands_still) {
  Site site(1);
  site.start_all();
  json job = site.job("a");
  job["status"]["progress"] = {
      {"attempt", 0}, {"step", 7}, {"phase", "save"}, {"updatedAt", format_time(site.now())}};
  const auto findings =
      explain(*read_evidence({.job = job, .pods = {}, .events = {}, .nodes = {}}, site.now() + 1h));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, "NoProgress");
  EXPECT_EQ(findings[0].seen.what, "its progress has not changed since step 7, in phase save");
}

}  // namespace
}  // namespace tj
