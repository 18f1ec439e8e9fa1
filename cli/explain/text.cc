// Findings as a person reads them, and as a program does.
#include <nlohmann/json.hpp>

#include "cli/explain/rules.h"

namespace tj {
namespace {

using nlohmann::json;

std::string length_text(std::chrono::seconds length) {
  const auto count = length.count();
  if (count < 120) return std::to_string(count) + " s";
  if (count < 120 * 60) return std::to_string(count / 60) + " min";
  if (count < 48 * 3600) return std::to_string(count / 3600) + " h";
  return std::to_string(count / 86'400) + " days";
}

/// What the job is in, in the operator's words.
std::string summary_of(const Evidence& evidence) {
  const JobStatus& status = evidence.job.status;
  if (status.reason.empty()) return "no status yet";
  std::string text = std::string(to_string(status.phase)) + " (" + status.reason + ")";
  if (!status.message.empty()) text += ": " + status.message;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string nothing_found(const Evidence& evidence) {
  switch (evidence.job.status.phase) {
    case Phase::succeeded: return "It has succeeded.\n";
    case Phase::running: return "It runs, and nothing is in its way.\n";
    default: return "Nothing is known to be in its way; a moment later there may be more to see.\n";
  }
}

}  // namespace

std::string age_text(TimePoint time, TimePoint now) {
  const auto age = std::chrono::floor<std::chrono::seconds>(now - time);
  const std::string words = age.count() < 0 ? "in " + length_text(-age) : length_text(age) + " ago";
  return words + " (" + format_time(time) + ")";
}

std::string to_text(const Evidence& evidence, const std::vector<Finding>& findings) {
  const ObjectMeta& meta = evidence.job.meta;
  std::string text = "job " + to_string(meta.key()) + ": " + summary_of(evidence) + "\n\n";
  if (findings.empty()) return text + nothing_found(evidence);
  int number = 0;
  for (const Finding& finding : findings) {
    text += std::to_string(++number) + ". " + finding.cause + ": " + finding.seen.object;
    if (finding.seen.time) text += ", " + age_text(*finding.seen.time, evidence.now);
    text += "\n   " + finding.seen.what + "\n   What to do: " + finding.remedy + "\n";
  }
  return text;
}

json to_json(const Evidence& evidence, const std::vector<Finding>& findings) {
  const ObjectMeta& meta = evidence.job.meta;
  json list = json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"cause", finding.cause},
                    {"object", finding.seen.object},
                    {"time", finding.seen.time ? json(format_time(*finding.seen.time)) : json()},
                    {"what", finding.seen.what},
                    {"remedy", finding.remedy}});
  }
  return {{"job", meta.name},
          {"namespace", meta.ns},
          {"phase", to_string(evidence.job.status.phase)},
          {"summary", summary_of(evidence)},
          {"findings", std::move(list)}};
}

}  // namespace tj
