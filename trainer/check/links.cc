#include "trainer/check/links.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {
using enum Severity;

constexpr double kLatencyHighS = 5e-3;        // ranks of one machine room are below a tenth of it
constexpr double kPairSlowShare = 0.5;        // of the median
constexpr double kLinkSlowShare = 0.5;        // of what the interface says of itself
constexpr double kTcpGoodput = 0.94;          // of the bits on an Ethernet of 1500-byte packets
constexpr double kGradientBytes = 4 * 124e6;  // of GPT-2 small, in fp32

std::string fixed(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string rate_text(double bytes_per_second) { return size_text(bytes_per_second) + "/s"; }

std::string rank_name(const LinkFacts& facts, int rank) {
  const auto worker = static_cast<std::size_t>(rank / facts.ranks_per_worker);
  return "rank " + std::to_string(rank) +
         (worker < facts.workers.size() ? " (" + facts.workers[worker].node + ")" : "");
}

std::string pair_name(const LinkFacts& facts, const PairFacts& pair) {
  return rank_name(facts, pair.left) + " and " + rank_name(facts, pair.right);
}

Finding compare(const LinkFacts& facts, const char* what, std::string WorkerFacts::*version,
                Severity severity) {
  std::string others;
  const WorkerFacts& first = facts.workers.front();
  for (const WorkerFacts& worker : facts.workers) {
    if (worker.*version == first.*version) continue;
    others += (others.empty() ? "" : ", ") + name_of(worker) + " has " + worker.*version;
  }
  if (others.empty()) return {pass, "versions", std::string(what) + " " + first.*version, "", {}};
  return {severity,
          "versions",
          std::string(what) + " " + first.*version + " at " + name_of(first) + ", but " + others,
          "all ranks must run the same image: the same tag may be cached in two versions "
          "(imagePullPolicy), a digest is exact",
          {}};
}

/// Bytes per second that the slowest interface promises; absent where one doesn't say.
std::optional<double> promised(const LinkFacts& facts) {
  int mbps = 0;
  for (const WorkerFacts& worker : facts.workers) {
    if (worker.link_mbps <= 0 || worker.interface == "lo") return std::nullopt;
    mbps = mbps == 0 ? worker.link_mbps : std::min(mbps, worker.link_mbps);
  }
  return mbps == 0 ? std::nullopt : std::optional(mbps * 1e6 / 8 * kTcpGoodput);
}

std::string text_in(const nlohmann::json& document, const char* name) {
  const auto value = document.find(name);
  return value == document.end() || !value->is_string() ? "" : value->get<std::string>();
}

int number_in(const nlohmann::json& document, const char* name) {
  const auto value = document.find(name);
  return value == document.end() || !value->is_number_integer() ? 0 : value->get<int>();
}

}  // namespace

nlohmann::json to_json(const WorkerFacts& facts) {
  auto findings = nlohmann::json::array();
  for (const Finding& finding : facts.findings) findings.push_back(to_json(finding));
  return {{"worker", facts.index},        {"node", with_invalid_utf8_replaced(facts.node)},
          {"trainer", facts.trainer},     {"libtorch", facts.libtorch},
          {"build", facts.build},         {"interface", facts.interface},
          {"link_mbps", facts.link_mbps}, {"findings", findings}};
}

Result<WorkerFacts> worker_facts_from_json(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("findings") || !document["findings"].is_array() ||
      !document.contains("worker")) {
    return Error{.code = Code::invalid, .message = "has no findings", .subject = "worker"};
  }
  WorkerFacts facts{.index = number_in(document, "worker"),
                    .node = text_in(document, "node"),
                    .trainer = text_in(document, "trainer"),
                    .libtorch = text_in(document, "libtorch"),
                    .build = text_in(document, "build"),
                    .interface = text_in(document, "interface"),
                    .link_mbps = number_in(document, "link_mbps"),
                    .findings = {}};
  for (const auto& element : document["findings"]) {
    auto finding = finding_from_json(element);
    if (!finding) return finding.error();
    facts.findings.push_back(*std::move(finding));
  }
  return facts;
}

std::string name_of(const WorkerFacts& worker) {
  return "worker " + std::to_string(worker.index) + " (" + worker.node + ")";
}

void settle_meeting(std::vector<WorkerFacts>& workers) {
  for (WorkerFacts& worker : workers) {
    for (Finding& finding : worker.findings) {
      const bool is_of_meeting = finding.check == "master" || finding.check == "port";
      if (!is_of_meeting || finding.severity != Severity::retry) continue;
      finding.severity = Severity::pass;
      finding.found +=
          ", though not at first: " + finding.advice.substr(0, finding.advice.find(';'));
      finding.advice.clear();
    }
  }
}

double LinkFacts::bytes_per_second() const {
  const double count = world_size();
  if (all_reduce_s <= 0) return 0;
  return 2 * (count - 1) / count * static_cast<double>(all_reduce_bytes) / all_reduce_s;
}

std::vector<Finding> judge_versions(const LinkFacts& facts) {
  const Finding trainer = compare(facts, "trainer", &WorkerFacts::trainer, fatal);
  const Finding libtorch = compare(facts, "libtorch", &WorkerFacts::libtorch, fatal);
  const Finding build = compare(facts, "build", &WorkerFacts::build, warn);
  std::vector<Finding> findings;
  for (const Finding& finding : {trainer, libtorch, build})
    if (finding.severity != pass) findings.push_back(finding);
  if (findings.empty())
    findings.push_back(
        {pass, "versions", trainer.found + ", " + libtorch.found + ", " + build.found, "", {}});
  return findings;
}

std::vector<Finding> judge_clocks(const LinkFacts& facts) {
  std::vector<Finding> findings;
  std::set<int> told;  // one clock for each worker
  double largest_s = 0;
  for (const RankFacts& rank : facts.ranks) {
    const double off_s = std::abs(rank.clock_offset_s);
    // Half of the round trip is not known to be on the way there.
    const double surely_s = off_s - rank.round_trip_s / 2;
    largest_s = std::max(largest_s, off_s);
    if (surely_s < kClockWarnS || !told.insert(rank.rank / facts.ranks_per_worker).second) continue;
    const bool is_fatal = surely_s >= kClockFatalS;
    findings.push_back(
        {is_fatal ? Severity::fatal : warn,
         "clocks",
         rank_name(facts, rank.rank) + " is " + duration_text(off_s) +
             (rank.clock_offset_s < 0 ? " behind " : " ahead of ") + rank_name(facts, 0),
         std::string("that node's time is not synchronised (NTP): lines of logs can't be put in "
                     "order") +
             (is_fatal ? ", and leases, heartbeats and tokens are over before they begin" : ""),
         {}});
  }
  if (findings.empty())
    findings.push_back({pass, "clocks", "at most " + duration_text(largest_s) + " apart", "", {}});
  return findings;
}

std::vector<Finding> judge_latency(const LinkFacts& facts) {
  if (facts.ranks.empty()) return {};
  const auto& worst = *std::ranges::max_element(facts.ranks, {}, &RankFacts::round_trip_s);
  const std::string found = "round trip at most " + duration_text(worst.round_trip_s) + " (" +
                            rank_name(facts, 0) + " and " + rank_name(facts, worst.rank) + ")";
  if (worst.round_trip_s < kLatencyHighS) return {{pass, "latency", found, "", {}}};
  return {{warn,
           "latency",
           found,
           "not of one machine room: each all-reduce waits for 2(N-1) such hops; the nodes should "
           "be near each other",
           {}}};
}

std::vector<Finding> judge_pairs(const LinkFacts& facts) {
  if (facts.pairs.empty()) return {};
  auto sorted = facts.pairs;
  std::ranges::sort(sorted, {}, &PairFacts::bytes_per_second);
  const double median = sorted[sorted.size() / 2].bytes_per_second;
  const PairFacts& slowest = sorted.front();
  std::vector<Finding> findings{{pass,
                                 "pairs",
                                 rate_text(slowest.bytes_per_second) + " each way at least (" +
                                     pair_name(facts, slowest) + ")",
                                 "",
                                 {}}};
  for (const PairFacts& pair : sorted) {
    if (pair.bytes_per_second >= kPairSlowShare * median) break;
    findings.push_back({warn,
                        "pairs",
                        pair_name(facts, pair) + ": " + rate_text(pair.bytes_per_second),
                        "less than half of the median, " + rate_text(median) +
                            ", and all ranks wait for it: a cable, a port, or another job there",
                        {}});
  }
  return findings;
}

Finding judge_all_reduce(const LinkFacts& facts) {
  const double rate = facts.bytes_per_second();
  const double ranks = facts.world_size();
  const double gradients_s = 2 * (ranks - 1) / ranks * kGradientBytes / std::max(rate, 1.0);
  Finding finding{pass,
                  "all-reduce",
                  rate_text(rate) + " each way (" + facts.transport + ", " +
                      size_text(static_cast<double>(facts.all_reduce_bytes)) + " in " +
                      duration_text(facts.all_reduce_s) + ")",
                  "",
                  {}};
  const std::string cost =
      "gradients of 124 million parameters (fp32) take " + duration_text(gradients_s) + " per step";
  const auto expected = promised(facts);
  if (!expected || facts.transport != "Gloo") {
    finding.advice = cost;
    return finding;
  }
  const double share = rate / *expected;
  finding.advice = fixed(share * 100, "%.0f %%") + " of what " + facts.workers.front().interface +
                   " promises (" + rate_text(*expected) + "); " + cost;
  if (share < kLinkSlowShare) {
    finding.severity = warn;
    finding.advice +=
        "; looked for should be: another flow, a limit on the pod, half duplex, a slower switch";
  }
  return finding;
}

std::vector<Finding> judge_links(const LinkFacts& facts) {
  auto findings = judge_versions(facts);
  const bool is_alone = facts.world_size() == 1;
  for (Finding& finding : findings)
    finding.where = is_alone ? name_of(facts.workers.front()) : "all ranks";
  if (is_alone) return findings;
  const auto add = [&](const std::vector<Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  add(judge_clocks(facts));
  add(judge_latency(facts));
  add(judge_pairs(facts));
  findings.push_back(judge_all_reduce(facts));
  for (Finding& finding : findings) finding.where = "all ranks";
  return findings;
}

}  // namespace tj::trainer
