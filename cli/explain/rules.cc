#include "cli/explain/rules.h"

#include <algorithm>
#include <utility>

namespace tj {
namespace {

std::string filled_in(std::string text, const std::string& place, const std::string& value) {
  for (auto at = text.find(place); at != std::string::npos;
       at = text.find(place, at + value.size()))
    text.replace(at, place.size(), value);
  return text;
}

}  // namespace

const Rules& all_rules() {
  static const Rules rules = [] {
    Rules all;
    for (auto* family :
         {loss_rules, exit_rules, run_rules, control_rules, placement_rules, start_rules}) {
      for (Rule& rule : family()) all.push_back(std::move(rule));
    }
    return all;
  }();
  return rules;
}

/// By stage, and within it by time: what a stage holds has no cause in a later one.
std::vector<Finding> explain(const Evidence& evidence) {
  std::vector<Finding> findings;
  for (const Rule& rule : all_rules()) {
    std::string remedy = filled_in(rule.remedy, "{job}", evidence.job.meta.name);
    remedy = filled_in(std::move(remedy), "{ns}", evidence.job.meta.ns);
    for (Sighting& seen : rule.look(evidence))
      findings.push_back({rule.cause, rule.stage, std::move(seen), remedy});
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const auto time_of = [](const Finding& each) {
      return each.seen.time.value_or(TimePoint::max());
    };
    return std::pair(a.stage, time_of(a)) < std::pair(b.stage, time_of(b));
  });
  return findings;
}

}  // namespace tj
