// What the commands say of a job, as a person reads it.
#include "cli/jobs/job_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/jobs/screen.h"
#include "cli/jobs/table.h"
#include "cli/plain_text.h"
#include "contract/outcome.h"

namespace tj {
namespace {

using std::chrono::seconds;

const TimePoint kNow = *parse_time("2026-11-25T10:00:00Z");

JobView running() {
  JobView view{.now = kNow};
  view.job.meta = {.name = "mnist", .ns = "lab", .creation_time = kNow - seconds{600}};
  view.job.spec.worker_count = 2;
  JobStatus& status = view.job.status;
  status.phase = Phase::running;
  status.reason = "WorkersRunning";
  status.message = "2 of 2 workers have started";
  status.ready_text = "2/2";
  status.attempt = 1;
  status.attempt_start_time = kNow - seconds{300};
  status.restarts = 1;
  status.restarts_counted = 1;
  status.progress = JobProgress{.attempt = 1,
                                .step = 120,
                                .total_steps = 1000,
                                .phase = "step",
                                .eta_seconds = 244,
                                .loss = 3.1234567,
                                .tokens_per_second = 12345.6,
                                .mfu = 0.41,
                                .updated_at = kNow - seconds{10}};
  status.last_checkpoint = LastCheckpoint{.step = 100, .path = "/out/step-100"};
  for (int rank : {0, 1}) {
    Pod pod;
    pod.meta = {.name = "mnist-worker-" + std::to_string(rank),
                .creation_time = kNow - seconds{300}};
    pod.worker_index = rank;
    pod.attempt = 1;
    pod.phase = PodPhase::running;
    pod.ready = true;
    pod.node = rank == 0 ? "node-a" : "node-b";
    view.pods.push_back(pod);
  }
  return view;
}

TEST(JobText, a_job_that_runs) {
  EXPECT_EQ(status_text(running()),
            R"(job         mnist (namespace lab)
phase       Running (WorkersRunning): 2 of 2 workers have started
ranks       2/2 ready
nodes       2: node-a, node-b
attempt     1, since 5m
restarts    1 (1 of at most 3 that count, 0 that do not)
progress    [##----------------------] 120/1000 (12%), step, ETA 3m54s, said 10s ago
loss        3.123
rate        12346 tokens/s of all ranks, MFU 41 %
goodput     not in the status; the trainer tells it at its end and in /metrics
checkpoint  step 100, /out/step-100

RANK  PHASE    READY  ATTEMPT  NODE    AGE  NOTE
0     Running  yes    1        node-a  5m   -
1     Running  yes    1        node-b  5m   -
)");
  EXPECT_EQ(summary_line(running()),
            "job mnist: Running (2/2 ready), attempt 1, 120/1000 (12%), loss 3.123");
}

TEST(JobText, a_job_that_has_failed_says_who_failed_first) {
  JobView view = running();
  view.job.status.phase = Phase::failed;
  view.job.status.reason = "WorkerFailed";
  view.job.status.message = "worker 1 failed first";
  view.job.status.completion_time = kNow - seconds{60};
  view.job.status.first_failure = FirstFailure{.attempt = 1,
                                               .rank = 1,
                                               .node = "node-b",
                                               .exit_code = 3,
                                               .reason = "Error",
                                               .message = "the disk\nis full"};
  const std::string text = status_text(view);
  EXPECT_NE(text.find("attempt     1, ended 60s ago\n"), text.npos) << text;
  EXPECT_NE(
      text.find("failure     rank 1 of attempt 1: ExitCode, exit code 3, on node node-b, Error: "
                "the disk is full\n"),
      text.npos)
      << text;
  EXPECT_EQ(text.find("ETA"), text.npos) << text;
}

TEST(JobText, a_worker_of_our_trainer_has_its_words_and_not_its_document) {
  JobView view = running();
  view.pods[0].exit = ContainerExit{
      .exit_code = 0,
      .reason = "Completed",
      .message = to_termination_message(
          {.reason = "Finished", .message = "finished 30 steps", .rank = 0, .step = 30})};
  view.pods[1].exit = ContainerExit{.exit_code = 0, .reason = "Completed", .message = ""};
  const std::string text = status_text(view);
  EXPECT_NE(text.find("exit code 0, finished 30 steps\n"), text.npos) << text;
  EXPECT_NE(text.find("exit code 0, Completed\n"), text.npos) << text;
}

TEST(JobText, one_that_has_ended_has_no_ready_workers_to_count) {
  JobView view = running();
  view.job.status.phase = Phase::succeeded;
  view.job.status.progress.reset();
  EXPECT_EQ(summary_line(view), "job mnist: Succeeded, attempt 1: 2 of 2 workers have started");
}

TEST(JobText, of_many_ranks_only_those_that_do_not_simply_run) {
  JobView view = running();
  for (int rank = 2; rank < 40; ++rank) {
    Pod pod = view.pods.front();
    pod.worker_index = rank;
    view.pods.push_back(pod);
  }
  view.pods[7].ready = false;
  view.pods[7].phase = PodPhase::pending;
  view.pods[7].waiting_reason = "ImagePullBackOff";
  view.pods[7].waiting_message = "no such image";
  const std::string text = status_text(view);
  EXPECT_NE(
      text.find("7     Pending  no     1        node-a  5m   ImagePullBackOff: no such image\n"
                "and 39 more ranks (tj top shows each)\n"),
      text.npos)
      << text;
}

TEST(JobText, a_local_run_without_its_process_is_interrupted) {
  JobView view = running();
  view.is_local = true;
  view.has_lost_its_process = true;
  EXPECT_TRUE(is_over(view));
  EXPECT_EQ(phase_text(view), "Interrupted");
  EXPECT_NE(
      status_text(view).find("phase       Interrupted (ProcessEnded): its tj run has ended; it was "
                             "Running\n"),
      std::string::npos);
  view.job.status.phase = Phase::succeeded;
  EXPECT_EQ(phase_text(view), "Succeeded");
}

TEST(JobText, the_list_has_the_columns_of_kubectl) {
  JobView bare{.now = kNow};
  bare.job.meta = {.name = "new", .ns = "lab", .creation_time = kNow - seconds{3}};
  bare.job.spec.worker_count = 4;
  EXPECT_EQ(list_text({running(), bare}, {}),
            R"(NAME   PHASE    READY  PROGRESS        ATTEMPT  RESTARTS  REASON          AGE
mnist  Running  2/2    120/1000 (12%)  1        1         WorkersRunning  10m
new    Pending  0/4    -               0        0         -               3s
)");
  EXPECT_EQ(
      list_text({running()}, {.with_namespace = true, .wide = true}),
      "NAMESPACE  NAME   PHASE    READY  PROGRESS        ATTEMPT  RESTARTS  REASON          AGE  "
      "ETA  "
      "  LOSS   TOKENS/S  MESSAGE\n"
      "lab        mnist  Running  2/2    120/1000 (12%)  1        1         WorkersRunning  10m  "
      "3m54s  3.123  12346     2 of 2 workers have started\n");
}

TEST(JobText, top_says_what_is_not_known) {
  const std::string text = top_text(running());
  EXPECT_NE(text.find("0     Running  yes    5m   6173      -       node-a  mnist-worker-0\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("TOKENS/S is an equal share"), text.npos);
  EXPECT_NE(text.find("Memory is not known here: kubectl top pod -l job-name=mnist"), text.npos);
  JobView silent = running();
  silent.job.status.progress.reset();
  EXPECT_NE(top_text(silent).find("Rates are not known: rank 0 has told none."), std::string::npos);
}

TEST(JobText, events_are_told_with_object_and_count) {
  const nlohmann::json event{{"involvedObject", {{"kind", "Pod"}, {"name", "mnist-worker-0"}}},
                             {"reason", "FailedScheduling"},
                             {"type", "Warning"},
                             {"count", 3},
                             {"message", "0/2 nodes\x1b[31m"},
                             {"lastTimestamp", "2026-11-25T09:58:00Z"}};
  EXPECT_EQ(
      events_text({event}, kNow),
      "LAST          TYPE     REASON            OBJECT              MESSAGE\n"
      "2m (3 times)  Warning  FailedScheduling  pod/mnist-worker-0  0/2 nodes\xef\xbf\xbd[31m\n");
  EXPECT_EQ(events_text({}, kNow), "no events\n");
}

TEST(Table, others_text_is_made_harmless) {
  EXPECT_EQ(plain_line("a\x1b[2Jb\rc\nd\te\x7f"),
            "a\xef\xbf\xbd[2Jb\xef\xbf\xbd"
            "c d e\xef\xbf\xbd");
  EXPECT_EQ(plain_line("\xc2\x9b"
                       "31m"),
            "\xef\xbf\xbd"
            "31m");                                           // CSI of eight bits
  EXPECT_EQ(plain_line("x\xe2\x80\xaey"), "x\xef\xbf\xbdy");  // right-to-left override
  EXPECT_EQ(plain_line("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(plain_line("Größe"), "Größe");
}

TEST(Table, columns_count_characters_and_not_bytes) {
  EXPECT_EQ(table_text({{"A", "B"}, {"größe", "1"}, {"", "2"}}), "A      B\ngröße  1\n-      2\n");
  EXPECT_EQ(cut_line("größer als das", 6), "größe…");
  EXPECT_EQ(cut_line("kurz", 6), "kurz");
}

TEST(Table, times_are_those_of_kubectl) {
  const std::pair<long long, const char*> kTimes[] = {
      {-5, "0s"},        {0, "0s"},       {119, "119s"},          {120, "2m"},
      {234, "3m54s"},    {600, "10m"},    {10'799, "179m"},       {10'800, "3h"},
      {18'060, "5h1m"},  {28'800, "8h"},  {172'799, "47h"},       {172'800, "2d"},
      {180'000, "2d2h"}, {700'000, "8d"}, {86'400 * 729, "729d"}, {86'400LL * 731, "2y1d"}};
  for (const auto& [count, text] : kTimes) EXPECT_EQ(duration_text(seconds{count}), text) << count;
}

TEST(Screen, a_frame_overwrites_the_one_before_line_by_line) {
  const Frame first = frame_of("one\ntwo\n", 0, {.columns = 80, .rows = 24});
  EXPECT_EQ(first.bytes, "\x1b[?2026hone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[?2026l");
  EXPECT_EQ(first.line_count, 2U);
  const Frame second = frame_of("three\n", first.line_count, {.columns = 80, .rows = 24});
  EXPECT_EQ(second.bytes, "\x1b[?2026h\x1b[2Fthree\x1b[K\n\x1b[J\x1b[?2026l");
}

TEST(Screen, a_frame_is_never_larger_than_the_terminal) {
  const Frame frame = frame_of("a long line\nb\nc\nd\n", 0, {.columns = 4, .rows = 3});
  EXPECT_EQ(frame.bytes, "\x1b[?2026ha l…\x1b[K\nb\x1b[K\n\x1b[J\x1b[?2026l");
  EXPECT_EQ(frame.line_count, 2U);
}

}  // namespace
}  // namespace tj
