// What the ranks have measured -> result and words; and how all of it is printed.
#include "trainer/check/links.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "trainer/check/report.h"

namespace tj::trainer {
namespace {
using enum Severity;

LinkFacts healthy(int workers) {
  LinkFacts facts{.all_reduce_bytes = 25 << 20, .all_reduce_s = 0.224, .transport = "Gloo"};
  for (int index = 0; index < workers; ++index) {
    facts.workers.push_back({.index = index,
                             .node = "node-" + std::string(1, static_cast<char>('a' + index)),
                             .trainer = "0.1.0",
                             .libtorch = "2.11.0",
                             .build = "c0ffee",
                             .interface = "eth0",
                             .link_mbps = 1000,
                             .findings = {{pass, "cores", "8 cores", "", ""}}});
    if (index > 0)
      facts.ranks.push_back({.rank = index, .round_trip_s = 2e-4, .clock_offset_s = 1e-3});
    facts.pairs.push_back(
        {.left = index, .right = (index + 1) % workers, .bytes_per_second = 117e6});
  }
  return facts;
}

TEST(CheckLinks, a_healthy_pair_passes) {
  const auto findings = judge_links(healthy(2));
  EXPECT_EQ(worst(findings), pass);
  const auto& all_reduce = findings.back();
  EXPECT_EQ(all_reduce.check, "all-reduce");
  EXPECT_EQ(all_reduce.found, "117 MB/s each way (Gloo, 26 MB in 224 ms)");
  EXPECT_EQ(all_reduce.advice,
            "100 % of what eth0 promises (118 MB/s); gradients of 124 million parameters (fp32) "
            "take 4.2 s per step");
}

TEST(CheckLinks, what_ranks_that_have_met_lacked_for_it_at_first_is_over) {
  LinkFacts facts = healthy(2);
  facts.workers[1].findings = {{retry, "master", "job-worker-0.job:29500",
                                "the name does not resolve; it needs a Service", ""},
                               {retry, "data", "/data", "is not there", ""}};
  settle_meeting(facts.workers);
  const auto& [master, data] = std::tie(facts.workers[1].findings[0], facts.workers[1].findings[1]);
  EXPECT_EQ(master.severity, pass);
  EXPECT_EQ(master.found, "job-worker-0.job:29500, though not at first: the name does not resolve");
  EXPECT_EQ(master.advice, "");
  EXPECT_EQ(data.severity, retry);
}

TEST(CheckLinks, the_ring_law_counts_what_each_rank_sends) {
  LinkFacts facts = healthy(4);
  facts.all_reduce_s = 0.3;
  EXPECT_NEAR(facts.bytes_per_second(), 1.5 * (25 << 20) / 0.3, 1);
  facts.all_reduce_s = 0;
  EXPECT_EQ(facts.bytes_per_second(), 0);
}

TEST(CheckLinks, a_link_far_below_its_promise_is_warned_of) {
  LinkFacts facts = healthy(2);
  facts.all_reduce_s = 1;
  EXPECT_EQ(judge_all_reduce(facts).severity, warn);
  facts.workers[1].link_mbps = 0;  // a virtual interface
  EXPECT_EQ(judge_all_reduce(facts).severity, pass);
  facts.workers[1].link_mbps = 100;
  EXPECT_EQ(judge_all_reduce(facts).severity, pass) << "the slower end decides";
}

TEST(CheckLinks, clocks_two_seconds_apart_are_warned_of_thirty_are_fatal) {
  LinkFacts facts = healthy(3);
  facts.ranks[0].clock_offset_s = -2.5;
  facts.ranks[1].clock_offset_s = 31;
  const auto findings = judge_clocks(facts);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, warn);
  EXPECT_EQ(findings[0].found, "rank 1 (node-b) is 2.5 s behind rank 0 (node-a)");
  EXPECT_EQ(findings[1].severity, fatal);
  EXPECT_EQ(findings[1].found, "rank 2 (node-c) is 31 s ahead of rank 0 (node-a)");
}

TEST(CheckLinks, half_of_a_long_round_trip_is_no_skew) {
  LinkFacts facts = healthy(2);
  facts.ranks[0] = {.rank = 1, .round_trip_s = 4, .clock_offset_s = 3};
  EXPECT_EQ(judge_clocks(facts).front().severity, pass);
  EXPECT_EQ(judge_latency(facts).front().severity, warn);
}

TEST(CheckLinks, one_clock_is_told_of_once_for_each_worker) {
  LinkFacts facts = healthy(2);
  facts.ranks_per_worker = 2;
  facts.ranks = {{.rank = 1}, {.rank = 2, .clock_offset_s = 9}, {.rank = 3, .clock_offset_s = 9}};
  EXPECT_EQ(judge_clocks(facts).size(), 1u);
}

TEST(CheckLinks, a_pair_below_half_of_the_median_is_named) {
  LinkFacts facts = healthy(4);
  facts.pairs[2].bytes_per_second = 30e6;
  const auto findings = judge_pairs(facts);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].severity, warn);
  EXPECT_EQ(findings[1].found, "rank 2 (node-c) and rank 3 (node-d): 30 MB/s");
}

TEST(CheckLinks, two_versions_are_fatal_and_all_who_differ_are_named) {
  LinkFacts facts = healthy(3);
  facts.workers[1].trainer = facts.workers[2].trainer = "0.2.0";
  const auto findings = judge_versions(facts);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, fatal);
  EXPECT_EQ(findings[0].found,
            "trainer 0.1.0 at worker 0 (node-a), but worker 1 (node-b) has 0.2.0, worker 2 "
            "(node-c) has 0.2.0");
}

TEST(CheckLinks, two_builds_of_one_version_are_a_warning) {
  LinkFacts facts = healthy(2);
  facts.workers[1].build = "badcafe";
  EXPECT_EQ(worst(judge_versions(facts)), warn);
}

TEST(CheckLinks, a_single_rank_has_no_links) {
  const auto findings = judge_links(healthy(1));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].check, "versions");
}

TEST(CheckReport, what_workers_share_is_one_row_and_the_last_line_is_the_result) {
  LinkFacts facts = healthy(2);
  facts.workers[1].findings.push_back({warn, "memory", "1 GB free", "needs more", ""});
  const std::string text = render_findings(all_findings(facts));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "pass   cores       worker 0 (node-a), worker 1 (node-b)  8 cores");
  EXPECT_NE(text.find("\nwarn   memory      worker 1 (node-b)                     1 GB free\n"
                      "       needs more\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\nwarn: 1 thing to look at; training can begin\n")) << text;
}

TEST(CheckReport, the_network_stands_last_before_the_result) {
  LinkFacts facts = healthy(2);
  for (WorkerFacts& worker : facts.workers)
    worker.findings.insert(worker.findings.begin(),
                           {pass, kNetworkCheck, "Ethernet eth0: no InfiniBand adapter", "", ""});
  const std::string text = render_findings(all_findings(facts));
  EXPECT_TRUE(
      text.ends_with("\npass   network     worker 0 (node-a), worker 1 (node-b)  Ethernet "
                     "eth0: no InfiniBand adapter\n\npass: training can begin\n"))
      << text;
}

TEST(CheckReport, exit_codes_follow_the_worst) {
  const auto code = [](Severity severity) {
    return report_json(std::vector<Finding>{{severity, "x", "", "", ""}})["exit_code"].get<int>();
  };
  EXPECT_EQ(code(pass), 0);
  EXPECT_EQ(code(warn), 0);
  EXPECT_EQ(code(retry), 69);
  EXPECT_EQ(code(fatal), 78);
  EXPECT_EQ(severity_of_exit(69), retry);
  EXPECT_EQ(severity_of_exit(137), retry);
  EXPECT_EQ(severity_of_exit(78), fatal);
}

TEST(CheckReport, what_is_no_utf8_is_written_as_such) {
  const Finding finding{
      .severity = warn, .check = "c", .found = "r\xe9s", .advice = "\xff", .where = "\xc3"};
  EXPECT_EQ(report_json(std::vector{finding})["findings"].dump(),
            "[{\"advice\":\"\xef\xbf\xbd\",\"check\":\"c\",\"found\":\"r\xef\xbf\xbds\","
            "\"severity\":\"warn\",\"where\":\"\xef\xbf\xbd\"}]");
}

TEST(CheckReport, what_is_written_is_read_again) {
  const LinkFacts facts = healthy(2);
  const auto worker = worker_facts_from_json(to_json(facts.workers[1]));
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->findings, facts.workers[1].findings);
  EXPECT_EQ(worker->node, "node-b");
  const auto findings = findings_from_json(report_json(facts));
  ASSERT_TRUE(findings.ok());
  EXPECT_EQ(*findings, all_findings(facts));
  for (const char* nonsense : {"null", "[]", "{}", R"({"findings": 1})", R"({"findings": [1]})",
                               R"({"worker": 0, "findings": [{"severity": "odd"}]})"}) {
    const auto document = nlohmann::json::parse(nonsense);
    EXPECT_FALSE(worker_facts_from_json(document).ok()) << nonsense;
    EXPECT_FALSE(findings_from_json(document).ok()) << nonsense;
  }
}

}  // namespace
}  // namespace tj::trainer
