// tj logs against the API server in memory: order, folding, restarts, breaks, the first failure.
#include "cli/logs/job_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/logs/read_logs.h"
#include "tests/cli/logs/job_site.h"

namespace tj {
namespace {
using nlohmann::json;
using testing::HasSubstr;

struct Logs : JobSite {
  Result<bool> show(LogsOptions options = {}, FoldBounds fold = {}) {
    options.job = "a";
    LogPrinter printer(target(), {}, fold);
    return show_job_logs(session(), options, printer);
  }
  void start(int workers, int attempt = 0) {
    for (int rank = 0; rank < workers; ++rank) {
      create_pod(rank, attempt);
      start_pod(rank);
    }
  }
  std::vector<std::string> lines() const {
    std::istringstream text(printed());
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
};
using Lines = std::vector<std::string>;

TEST(JobLogs, are_in_the_order_of_their_times_and_folded) {
  Logs site;
  site.create_job(3);
  site.set_phase("Running");
  site.start(3);
  for (const int rank : {0, 2, 1}) site.say(rank, "loading");
  site.say(2, "b");
  site.say(0, "c");
  EXPECT_TRUE(*site.show());
  EXPECT_EQ(site.lines(), (Lines{"[0-2] loading", "[2] b", "[0] c"}));
  EXPECT_EQ(site.notes(), "");
}

TEST(JobLogs, are_of_the_ranks_and_lines_that_were_asked_for) {
  Logs site;
  site.create_job(3);
  site.set_phase("Running");
  site.start(3);
  for (int line = 0; line < 5; ++line) {
    for (int rank = 0; rank < 3; ++rank)
      site.say(rank, std::to_string(rank) + std::to_string(line));
  }
  LogsOptions options{.tail_lines = 2};
  options.selection.ranks = RankSet::parse("0,2");
  EXPECT_TRUE(*site.show(options));
  EXPECT_EQ(site.lines(), (Lines{"[0] 03", "[2] 23", "[0] 04", "[2] 24"}));
}

TEST(JobLogs, say_which_workers_have_none) {
  Logs site;
  site.create_job(2);
  site.set_phase("Starting");
  site.create_pod(0);
  site.create_pod(1);
  const auto none = site.show();
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(describe(none.error()),
              HasSubstr("no worker of this choice has a log yet (job a: Starting"));
  site.start_pod(0);
  site.say(0, "x");
  EXPECT_TRUE(*site.show());
  EXPECT_THAT(site.notes(), HasSubstr("no log yet of worker 1"));
}

TEST(JobLogs, of_an_attempt_that_is_over_are_gone_and_it_is_said) {
  Logs site;
  site.create_job(1);
  site.set_phase("Running", 2);
  site.start(1, 2);
  LogsOptions options;
  options.selection.attempt = 1;
  const auto none = site.show(options);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(describe(none.error()), HasSubstr("attempt 1 has no pods any more"));
}

TEST(JobLogs, of_what_is_not_there_is_an_error) {
  Logs site;
  EXPECT_EQ(site.show().error().code, Code::not_found);
  site.create_job(1);
  site.set_phase("Running");
  site.start(1);
  LogsOptions options;
  options.selection.container = "trainer";
  EXPECT_EQ(site.show(options).error().code, Code::invalid);
}

TEST(JobLogs, are_read_in_order_with_few_streams_and_little_memory) {
  Logs site;
  constexpr int kRanks = 12;
  constexpr int kLines = 300;
  site.create_job(kRanks);
  site.set_phase("Running");
  site.start(kRanks);
  Lines expected;
  // All of one rank are later than all of another: most must wait.
  for (int rank = kRanks - 1; rank >= 0; --rank) {
    for (int line = 0; line < kLines; ++line) {
      const std::string text = std::to_string(line) + std::string(40, 'x');
      site.say(rank, text);
      expected.push_back("[" + std::to_string(rank) + "] " + text);
    }
  }
  LogsOptions options{.job = "a"};
  LogPrinter printer(site.target(), {}, {.delay = std::chrono::milliseconds{0}});
  std::vector<LogTarget> targets;
  for (int rank = 0; rank < kRanks; ++rank)
    targets.push_back({.rank = rank, .pod = JobSite::pod_name(rank), .container = "main"});
  ReadLogs logs(site.session(), options, printer,
                {.open_max = 3, .waiting_bytes_max = 1, .waiting_bytes_min = 2'000});
  EXPECT_TRUE(logs.run(targets));
  EXPECT_EQ(site.lines(), expected);
}

TEST(JobLogs, the_first_failure_is_shown_with_its_last_lines) {
  Logs site;
  site.create_job(2);
  site.start(2);
  const json failure{{"attempt", 0},  {"rank", 1},    {"cause", "ExitCode"},
                     {"exitCode", 3}, {"node", "n1"}, {"message", "disk full\nbye"}};
  site.set_status(
      {{"phase", "Failed"}, {"reason", "WorkerFailed"}, {"attempt", 0}, {"firstFailure", failure}});
  site.say(0, "other");
  for (int i = 0; i < 100; ++i) site.say(1, std::to_string(i));
  site.end_pod(1, 3);
  EXPECT_TRUE(*site.show({.first_failure = true}));
  EXPECT_THAT(site.notes(),
              HasSubstr("attempt 0: worker 1 on node n1 failed first: exit code 3: bye"));
  EXPECT_EQ(site.lines().size(), 50U);
  EXPECT_EQ(site.lines().back(), "[1] 99");
}

TEST(JobLogs, where_the_pod_of_the_first_failure_is_gone_its_last_words_are_shown) {
  Logs site;
  site.create_job(2);
  const json failure{{"attempt", 0},
                     {"rank", 1},
                     {"cause", "ExitCode"},
                     {"exitCode", 3},
                     {"message", "disk full\nbye"}};
  site.set_status({{"phase", "Running"},
                   {"reason", "WorkersRunning"},
                   {"attempt", 1},
                   {"firstFailure", failure}});
  site.start(2, 1);
  EXPECT_TRUE(*site.show({.first_failure = true}));
  EXPECT_EQ(site.lines(), (Lines{"[1] disk full", "[1] bye"}));
}

TEST(JobLogs, that_are_followed_go_on_after_a_restart_until_the_job_has_ended) {
  Logs site;
  site.create_job(2);
  site.set_phase("Starting");
  site.create_pod(0);
  site.create_pod(1);
  site.step([&] { return site.has_noted("Starting"); },
            [&] {
              site.start_pod(0);
              site.say(0, "zero");
            });
  site.step([&] { return site.has_printed("[0] zero"); },
            [&] {
              site.start_pod(1);
              site.say(1, "one");
            });
  site.step([&] { return site.has_printed("[1] one"); },
            [&] {
              site.end_pod(1, 3);
              site.remove_pod(0);
              site.remove_pod(1);
              site.set_phase("Restarting", 1);
              for (const int rank : {0, 1}) site.create_pod(rank, 1);
              for (const int rank : {0, 1}) site.start_pod(rank);
              for (const int rank : {0, 1}) site.say(rank, "again");
            });
  site.step([&] { return site.has_printed("again"); },
            [&] {
              for (const int rank : {0, 1}) site.end_pod(rank, 0);
              site.set_phase("Succeeded", 1);
            });
  EXPECT_TRUE(*site.show({.follow = true}));
  EXPECT_EQ(site.lines(), (Lines{"[0] zero", "[1] one", "[0-1] again"}));
  EXPECT_THAT(site.notes(), HasSubstr("job a: Succeeded"));
}

TEST(JobLogs, that_are_followed_survive_a_broken_connection) {
  Logs site;
  site.create_job(2);
  site.set_phase("Running");
  site.start(2);
  site.say(0, "1");
  site.say(1, "2");
  site.step([&] { return site.has_printed("] 2"); },
            [&] {
              site.api().end_logs(Error{Code::unavailable, "connection reset", "", {}});
              site.api().end_watches(Error{Code::unavailable, "connection reset", "", {}});
              site.say(0, "3");
              site.say(1, "4");
            });
  site.step([&] { return site.has_printed("] 3") && site.has_printed("] 4"); },
            [&] {
              for (const int rank : {0, 1}) site.end_pod(rank, 0);
              site.set_phase("Succeeded");
            });
  EXPECT_TRUE(*site.show({.follow = true}));
  auto lines = site.lines();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"[0] 1", "[0] 3", "[1] 2", "[1] 4"}));
  EXPECT_THAT(site.notes(), HasSubstr("connection reset"));
}

TEST(JobLogs, of_an_attempt_that_is_followed_end_with_it) {
  Logs site;
  site.create_job(1);
  site.set_phase("Running");
  site.start(1);
  site.say(0, "first");
  site.step([&] { return site.has_printed("first"); },
            [&] {
              site.remove_pod(0);
              site.set_phase("Running", 1);
              site.create_pod(0, 1);
              site.start_pod(0);
              site.say(0, "second");
            });
  LogsOptions options{.follow = true};
  options.selection.attempt = 0;
  EXPECT_TRUE(*site.show(options));
  EXPECT_EQ(site.lines(), Lines{"[0] first"});
}

TEST(JobLogs, of_a_job_that_is_deleted_end) {
  Logs site;
  site.create_job(1);
  site.set_phase("Running");
  site.start(1);
  site.say(0, "x");
  site.step(
      [&] { return site.has_printed("x"); },
      [&] {
        site.remove_pod(0);
        TJ_CHECK(site.api().objects().remove(Resource::training_jobs, {"default", "a"}).ok(), "a");
      });
  EXPECT_TRUE(*site.show({.follow = true}));
}

TEST(JobLogs, what_may_not_be_read_is_said_and_counts_as_a_failure) {
  Logs site;
  site.create_job(1);
  site.set_phase("Running");
  site.start(1);
  site.api().set_watch_fault([](const WatchRequest& request) {
    return request.log ? std::optional(Error{
                             Code::forbidden,
                             "pods \"a-worker-0\" is forbidden: cannot get resource \"pods/log\"",
                             "",
                             {}})
                       : std::nullopt;
  });
  EXPECT_FALSE(*site.show());
  EXPECT_THAT(site.notes(), HasSubstr("cannot get resource"));
}

TEST(JobLogs, a_line_for_a_terminal_moves_no_cursor) {
  FoldedLine line{.ranks = RankSet::parse("0-3"), .time = {}, .text = "a\x1b[2Jb\x1b[31mred\x07"};
  EXPECT_EQ(text_of(line, {.for_terminal = true}), "[0-3] a\ufffd[2Jb\x1b[31mred\ufffd\x1b[0m\n");
  EXPECT_EQ(text_of(line, {}), "[0-3] a\x1b[2Jb\x1b[31mred\x07\n")
      << "a file gets what was written";
}

}  // namespace
}  // namespace tj
