#include "trainer/check/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {

constexpr std::size_t kPlacesMax = 4;  // of one row; more are counted
constexpr const char* kIndent = "      ";

/// One line of the table: a finding and all places where it holds.
struct Row {
  Finding finding;
  std::vector<std::string> places;
};

std::vector<Row> rows_of(const std::vector<Finding>& findings) {
  std::vector<Row> rows;
  for (const Finding& finding : findings) {
    Finding placeless = finding;
    placeless.where.clear();
    const auto same = std::ranges::find(rows, placeless, &Row::finding);
    if (same == rows.end()) {
      rows.push_back({placeless, {finding.where}});
    } else {
      same->places.push_back(finding.where);
    }
  }
  return rows;
}

std::string places_text(const std::vector<std::string>& places) {
  std::string text;
  for (std::size_t at = 0; at < std::min(places.size(), kPlacesMax); ++at)
    text += (text.empty() ? "" : ", ") + places[at];
  if (places.size() > kPlacesMax)
    text += " and " + std::to_string(places.size() - kPlacesMax) + " more";
  return text;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace

std::vector<Finding> all_findings(const LinkFacts& facts) {
  std::vector<Finding> findings;
  // By check, not by worker: what one of many has differently then stands beside the others.
  std::vector<std::string> checks;
  for (const WorkerFacts& worker : facts.workers) {
    for (const Finding& finding : worker.findings)
      if (std::ranges::find(checks, finding.check) == checks.end()) checks.push_back(finding.check);
  }
  for (const std::string& check : checks) {
    for (const WorkerFacts& worker : facts.workers) {
      for (Finding finding : worker.findings) {
        if (finding.check != check) continue;
        if (finding.where.empty()) finding.where = name_of(worker);
        findings.push_back(std::move(finding));
      }
    }
  }
  const auto links = judge_links(facts);
  findings.insert(findings.end(), links.begin(), links.end());
  put_network_last(findings);
  return findings;
}

void put_network_last(std::vector<Finding>& findings) {
  std::ranges::stable_partition(
      findings, [](const Finding& finding) { return finding.check != kNetworkCheck; });
}

nlohmann::json report_json(const std::vector<Finding>& findings) {
  auto list = nlohmann::json::array();
  for (const Finding& finding : findings) list.push_back(to_json(finding));
  const Severity result = worst(findings);
  return {{"result", to_string(result)},
          {"exit_code", exit_code_for(result)},
          {"findings", std::move(list)}};
}

nlohmann::json report_json(const LinkFacts& facts) {
  auto document = report_json(all_findings(facts));
  auto ranks = nlohmann::json::array(), pairs = nlohmann::json::array();
  for (const RankFacts& rank : facts.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"round_trip_seconds", rank.round_trip_s},
                     {"clock_offset_seconds", rank.clock_offset_s}});
  for (const PairFacts& pair : facts.pairs)
    pairs.push_back(
        {{"ranks", {pair.left, pair.right}}, {"bytes_per_second", pair.bytes_per_second}});
  document["workers"] = facts.workers.size();
  document["world_size"] = facts.world_size();
  if (facts.world_size() == 1) return document;
  document["measured"] = {{"ranks", std::move(ranks)},
                          {"pairs", std::move(pairs)},
                          {"all_reduce",
                           {{"transport", facts.transport},
                            {"bytes", facts.all_reduce_bytes},
                            {"seconds", facts.all_reduce_s},
                            {"bytes_per_second", facts.bytes_per_second()}}}};
  return document;
}

Result<std::vector<Finding>> findings_from_json(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("findings") || !document["findings"].is_array())
    return Error{.code = Code::invalid, .message = "has no findings", .subject = "report"};
  std::vector<Finding> findings;
  for (const auto& element : document["findings"]) {
    auto finding = finding_from_json(element);
    if (!finding) return finding.error();
    findings.push_back(*std::move(finding));
  }
  return findings;
}

std::string render_findings(const std::vector<Finding>& findings) {
  const auto rows = rows_of(findings);
  std::size_t check_width = 0, place_width = 0;
  for (const Row& row : rows) {
    check_width = std::max(check_width, row.finding.check.size());
    place_width = std::max(place_width, places_text(row.places).size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += padded(std::string(to_string(row.finding.severity)), 7) +
            padded(row.finding.check, check_width + 2) +
            padded(places_text(row.places), place_width + 2) + row.finding.found + "\n";
    if (!row.finding.advice.empty()) text += kIndent + (" " + row.finding.advice) + "\n";
  }
  return text + "\n" + result_line(findings) + "\n";
}

std::string result_line(const std::vector<Finding>& findings) {
  const Severity result = worst(findings);
  const auto rows = rows_of(findings);
  const auto count =
      std::ranges::count_if(rows, [&](const Row& row) { return row.finding.severity == result; });
  const std::string things = std::to_string(count) + (count == 1 ? " thing" : " things");
  switch (result) {
    case Severity::pass: return "pass: training can begin";
    case Severity::warn: return "warn: " + things + " to look at; training can begin";
    case Severity::retry:
      return "retry: " + things + " not there yet; the same check may pass later (exit code 69)";
    case Severity::fatal:
      return "fatal: " + things + " to mend; training would fail (exit code 78)";
  }
  return "";
}

}  // namespace tj::trainer
