// What the page knows of jobs and their workers, fed with what a watch brings.
#include "cli/ui/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace tj::ui {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const ObjectKey kJob{"default", "mnist"};

TimePoint at(int seconds) { return TimePoint(std::chrono::seconds(1'700'000'000 + seconds)); }
double unix_at(int seconds) { return 1'700'000'000.0 + seconds; }

json job_object(json status, const std::string& uid = "job-1") {
  return {
      {"metadata",
       {{"name", kJob.name},
        {"namespace", kJob.ns},
        {"uid", uid},
        {"creationTimestamp", format_time(at(0))}}},
      {"spec",
       {{"replicaSpecs",
         {{"Worker",
           {{"replicas", 2},
            {"template", {{"spec", {{"containers", {{{"name", "main"}, {"image", "i"}}}}}}}}}}}}}},
      {"status", std::move(status)}};
}

json pod_object(int rank, int attempt, json status) {
  const std::string name = names::worker_pod(kJob.name, rank);
  return {{"metadata",
           {{"name", name},
            {"namespace", kJob.ns},
            {"uid", name + "-" + std::to_string(attempt)},
            {"creationTimestamp", format_time(at(attempt * 100))},
            {"labels",
             {{names::kLabelTrainingJob, kJob.name},
              {names::kLabelWorkerIndex, std::to_string(rank)},
              {names::kLabelAttempt, std::to_string(attempt)}}}}},
          {"spec", {{"nodeName", "a"}, {"containers", {{{"name", "main"}}}}}},
          {"status", std::move(status)}};
}

json running(int since) {
  return {
      {"phase", "Running"},
      {"containerStatuses",
       {{{"name", "main"}, {"state", {{"running", {{"startedAt", format_time(at(since))}}}}}}}}};
}

json ended(const char* phase, int code, int when) {
  return {{"phase", phase},
          {"containerStatuses",
           {{{"name", "main"},
             {"state",
              {{"terminated",
                {{"exitCode", code},
                 {"reason", "Error"},
                 {"startedAt", format_time(at(1))},
                 {"finishedAt", format_time(at(when))}}}}}}}}};
}

WatchDelta upsert(const json& object) { return Upsert{std::make_shared<const json>(object)}; }
WatchDelta erase(const json& object) { return Erase{std::make_shared<const json>(object)}; }
WatchDelta listed(const std::vector<json>& objects) {
  Replace page{.objects = {}, .resource_version = "9"};
  for (const json& object : objects) page.objects.push_back(object.dump());
  return page;
}

std::vector<std::string> states(const Board& board, int rank) {
  std::vector<std::string> texts;
  const json all = *board.job_document(kJob, {});
  for (const json& life : all["ranks"]["rows"][static_cast<std::size_t>(rank)]["lives"])
    texts.push_back(std::to_string(life["attempt"].get<int>()) + " " +
                    life["state"].get<std::string>());
  return texts;
}

TEST(Board, a_restart_leaves_the_earlier_lives_in_sight) {
  Board board;
  board.apply_jobs(listed({job_object({{"phase", "Running"}, {"attempt", 0}})}), at(1));
  board.apply_pods(listed({pod_object(0, 0, running(1)), pod_object(1, 0, running(1))}), at(1));
  EXPECT_THAT(states(board, 0), ElementsAre("0 Running"));

  board.apply_pods(upsert(pod_object(1, 0, ended("Failed", 42, 50))), at(50));
  board.apply_jobs(upsert(job_object({{"phase", "Restarting"},
                                      {"attempt", 1},
                                      {"attemptStartTime", format_time(at(60))},
                                      {"firstFailure",
                                       {{"attempt", 0},
                                        {"rank", 1},
                                        {"node", "a"},
                                        {"cause", "ExitCode"},
                                        {"exitCode", 42}}}})),
                   at(50));
  for (const int rank : {0, 1}) board.apply_pods(erase(pod_object(rank, 0, running(1))), at(55));
  board.apply_pods(upsert(pod_object(0, 1, running(61))), at(61));

  EXPECT_THAT(states(board, 0), ElementsAre("0 Gone", "1 Running"));
  EXPECT_THAT(states(board, 1), ElementsAre("0 Failed"));
  const json all = *board.job_document(kJob, {});
  EXPECT_EQ(all["ranks"]["rows"][0]["lives"][0]["ended"], unix_at(55)) << "when it was seen to go";
  EXPECT_EQ(all["ranks"]["rows"][1]["lives"][0]["ended"], unix_at(50)) << "when it says it ended";
  EXPECT_EQ(all["ranks"]["rows"][0]["lives"][1]["started"], unix_at(61));
  ASSERT_EQ(all["attempts"].size(), 2U);
  EXPECT_EQ(all["attempts"][0]["first_failure"]["rank"], 1);
  EXPECT_EQ(all["attempts"][0]["first_failure"]["exit_code"], 42);
  EXPECT_EQ(all["attempts"][1]["start"], unix_at(60));
  EXPECT_TRUE(all["attempts"][1]["first_failure"].is_null());
}

TEST(Board, who_failed_first_has_failed_though_nobody_saw_it_end) {
  Board board;
  board.apply_jobs(listed({job_object({})}), at(1));
  board.apply_pods(listed({pod_object(0, 0, running(1)), pod_object(1, 0, running(1))}), at(1));
  board.apply_jobs(
      upsert(job_object(
          {{"attempt", 1}, {"firstFailure", {{"attempt", 0}, {"rank", 1}, {"exitCode", 42}}}})),
      at(5));
  board.apply_pods(listed({}), at(5));
  EXPECT_THAT(states(board, 0), ElementsAre("0 Gone"));
  EXPECT_THAT(states(board, 1), ElementsAre("0 Failed"));
  EXPECT_EQ((*board.job_document(kJob, {}))["ranks"]["rows"][1]["lives"][0]["exit_code"], 42);
}

TEST(Board, what_a_new_list_does_not_name_has_gone) {
  Board board;
  board.apply_jobs(listed({job_object({{"phase", "Running"}})}), at(1));
  board.apply_pods(listed({pod_object(0, 0, running(1)), pod_object(1, 0, running(1))}), at(1));
  board.apply_pods(listed({pod_object(1, 0, running(1))}), at(7));
  EXPECT_THAT(states(board, 0), ElementsAre("0 Gone"));
  EXPECT_THAT(states(board, 1), ElementsAre("0 Running"));
  board.apply_jobs(listed({}), at(8));
  EXPECT_FALSE(board.job_document(kJob, {}));
}

TEST(Board, a_list_of_several_pages_counts_when_it_is_whole) {
  Board board;
  board.apply_jobs(listed({job_object({})}), at(1));
  board.apply_pods(listed({pod_object(0, 0, running(1)), pod_object(1, 0, running(1))}), at(1));
  Replace first{.objects = {pod_object(0, 0, running(1)).dump()}, .resource_version = ""};
  board.apply_pods(first, at(2));
  EXPECT_THAT(states(board, 1), ElementsAre("0 Running"));
  Replace last{.objects = {}, .resource_version = "10", .continues = true};
  board.apply_pods(last, at(2));
  EXPECT_THAT(states(board, 0), ElementsAre("0 Running"));
  EXPECT_THAT(states(board, 1), ElementsAre("0 Gone"));
}

TEST(Board, another_job_of_the_name_begins_anew) {
  Board board;
  board.apply_jobs(listed({job_object({{"phase", "Failed"}})}), at(1));
  board.apply_pods(listed({pod_object(0, 0, ended("Failed", 1, 2))}), at(2));
  board.apply_jobs(upsert(job_object({{"phase", "Pending"}}, "job-2")), at(3));
  EXPECT_THAT(states(board, 0), ElementsAre());
}

TEST(Board, samples_the_progress_that_the_status_tells) {
  Board board;
  for (const int step : {1, 2, 3}) {
    board.apply_jobs(upsert(job_object({{"phase", "Running"},
                                        {"progress",
                                         {{"step", step},
                                          {"totalSteps", 10},
                                          {"loss", 6 - step},
                                          {"tokensPerSecond", 100 * step},
                                          {"updatedAt", format_time(at(step))}}}})),
                     at(step));
  }
  const json series = *board.series_document(kJob);
  EXPECT_EQ(series["loss"]["time"], json({unix_at(1), unix_at(2), unix_at(3)}));
  EXPECT_EQ(series["loss"]["value"], json({5.0, 4.0, 3.0}));
  EXPECT_EQ(series["rate"]["value"], json({100.0, 200.0, 300.0}));
  EXPECT_EQ(board.jobs_document()["jobs"][0]["spark"], json({5.0, 4.0, 3.0}));
  EXPECT_EQ(board.jobs_document()["jobs"][0]["progress"]["percent"], 30);
}

TEST(Board, files_say_more_than_the_status_once_they_say_anything) {
  const TemporaryFolder kept;
  const std::filesystem::path& folder = kept.path();
  Board board;
  board.apply_jobs(
      upsert(job_object(
          {{"progress", {{"step", 1}, {"loss", 5}, {"updatedAt", format_time(at(1))}}}})),
      at(1));
  RunFiles files({folder}, 0);
  board.set_files(kJob, files);
  EXPECT_EQ((*board.series_document(kJob))["loss"]["value"], json({5.0}));
  std::ofstream(folder / "metrics.jsonl")
      << R"({"event":"begin","unix_seconds":1000.0})"
         "\n"
      << R"({"step":20,"steps":40,"loss":4.5,"seconds":1.0})"
         "\n"
      << R"({"event":"checkpoint","saved_step":20,"path":"/out/step-20"})"
         "\n";
  files.read_news(10);
  board.set_files(kJob, files);
  EXPECT_EQ((*board.series_document(kJob))["loss"]["value"], json({4.5}));
  const json all = *board.job_document(kJob, {});
  EXPECT_EQ(all["checkpoints"][0]["path"], "/out/step-20");
  EXPECT_EQ(all["job"]["progress"]["percent"], 50);
}

TEST(Board, shows_the_ranks_that_are_asked_for_and_no_more_than_its_bound) {
  Board board;
  json many = job_object({});
  many["spec"]["replicaSpecs"]["Worker"]["replicas"] = 5'000;
  board.apply_jobs(upsert(many), at(1));
  json ranks = (*board.job_document(kJob, {.from = 100, .count = 3}))["ranks"];
  EXPECT_EQ(ranks["total"], 5'000);
  EXPECT_EQ(ranks["rows"].size(), 3U);
  EXPECT_EQ(ranks["rows"][0]["rank"], 100);
  ranks = (*board.job_document(kJob, {.from = 0, .count = 1'000'000}))["ranks"];
  EXPECT_EQ(ranks["rows"].size(), static_cast<std::size_t>(Board::kRanksMax));
  ranks = (*board.job_document(kJob, {.from = 9'999'999, .count = 10}))["ranks"];
  EXPECT_EQ(ranks["from"], 4'999);
  EXPECT_EQ(ranks["rows"].size(), 1U);
}

TEST(Board, a_log_tells_of_a_life_until_its_pod_does) {
  Board board;
  board.apply_jobs(listed({job_object({{"attempt", 1}})}), at(1));
  const WorkerLife of_log{
      .rank = 0, .attempt = 0, .pod = "mnist-worker-0", .node = "", .state = "Gone"};
  board.add_past_life(kJob, of_log);
  EXPECT_THAT(states(board, 0), ElementsAre("0 Gone"));
  board.apply_pods(upsert(pod_object(0, 0, ended("Failed", 1, 9))), at(9));
  board.add_past_life(kJob, of_log);
  EXPECT_THAT(states(board, 0), ElementsAre("0 Failed"));
}

TEST(Board, knows_when_a_log_grows_no_more) {
  Board board;
  EXPECT_TRUE(board.has_ended(kJob, 0, 0)) << "no such job";
  board.apply_jobs(upsert(job_object({{"phase", "Running"}, {"attempt", 1}})), at(1));
  board.apply_pods(upsert(pod_object(0, 1, running(1))), at(1));
  board.apply_pods(upsert(pod_object(1, 1, ended("Succeeded", 0, 2))), at(2));
  EXPECT_FALSE(board.has_ended(kJob, 0, 1));
  EXPECT_TRUE(board.has_ended(kJob, 1, 1));
  EXPECT_TRUE(board.has_ended(kJob, 0, 0)) << "an earlier attempt";
}

TEST(Board, knows_whose_log_it_is) {
  Board board;
  EXPECT_EQ(board.pod_uid(kJob, 0, 0), "") << "no such job";
  board.apply_jobs(upsert(job_object({{"phase", "Running"}, {"attempt", 1}})), at(1));
  board.add_past_life(kJob, {.rank = 1, .attempt = 1, .pod = "x", .node = "", .state = "Gone"});
  EXPECT_EQ(board.pod_uid(kJob, 1, 1), "") << "of a file";
  board.apply_pods(upsert(pod_object(0, 0, running(1))), at(1));
  board.apply_pods(upsert(pod_object(0, 1, running(1))), at(1));
  EXPECT_EQ(board.pod_uid(kJob, 0, 0), "mnist-worker-0-0");
  EXPECT_EQ(board.pod_uid(kJob, 0, 1), "mnist-worker-0-1");
  json again = pod_object(0, 1, running(200));
  again["metadata"]["uid"] = "made again";
  again["metadata"]["creationTimestamp"] = format_time(at(200));
  board.apply_pods(upsert(again), at(200));
  EXPECT_EQ(board.pod_uid(kJob, 0, 1), "made again");
}

TEST(Board, of_a_run_whose_process_has_gone_nothing_runs) {
  Board board;
  board.apply_jobs(upsert(job_object({{"phase", "Running"}})), at(1));
  board.apply_pods(upsert(pod_object(0, 0, running(1))), at(1));
  board.interrupt(kJob, at(30));
  EXPECT_THAT(states(board, 0), ElementsAre("0 Gone"));
  EXPECT_TRUE(board.has_ended(kJob, 0, 0));
  const json job = (*board.job_document(kJob, {}))["job"];
  EXPECT_EQ(job["phase"], "Interrupted");
  EXPECT_EQ(job["completed"], unix_at(30));
  board.apply_jobs(upsert(job_object({{"phase", "Succeeded"}}, "job-2")), at(40));
  board.interrupt(kJob, at(50));
  EXPECT_EQ((*board.job_document(kJob, {}))["job"]["phase"], "Succeeded") << "it ended before";
}

TEST(Board, events_come_newest_first_and_bounded) {
  Board board;
  board.apply_jobs(upsert(job_object({})), at(1));
  std::vector<json> events;
  for (int i = 0; i < 500; ++i) {
    events.push_back({{"reason", "R" + std::to_string(i)},
                      {"lastTimestamp", format_time(at(i))},
                      {"message", std::string(10'000, 'x')},
                      {"involvedObject", {{"kind", "Pod"}, {"name", "p"}}}});
  }
  events.push_back(17);
  board.set_events(kJob, events);
  const json shown = (*board.job_document(kJob, {}))["events"];
  EXPECT_EQ(shown.size(), Board::kEventsMax);
  EXPECT_EQ(shown[0]["reason"], "R499");
  EXPECT_EQ(shown[0]["message"].get<std::string>().size(), Board::kMessageBytesMax);
}

TEST(Board, objects_of_any_form_do_no_harm) {
  Board board;
  for (const json& odd :
       {json(), json(17), json::object(), json{{"metadata", "x"}},
        json{{"metadata", {{"name", "x"}}}, {"spec", 1}, {"status", json::array()}}}) {
    board.apply_jobs(upsert(odd), at(1));
    board.apply_pods(upsert(odd), at(1));
    board.apply_pods(erase(odd), at(1));
  }
  EXPECT_TRUE(board.jobs_document()["jobs"].is_array());
}

}  // namespace
}  // namespace tj::ui
