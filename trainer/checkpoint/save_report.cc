#include "trainer/checkpoint/save_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"

namespace tj::trainer {
using nlohmann::ordered_json;

std::string save_line(const SaveReport& report) {
  char costs[96];
  std::snprintf(costs, sizeof costs, " | stall %.1f ms | written in %.2f s",
                report.stall_seconds * 1e3, report.written_seconds);
  return "checkpoint " + report.path.string() + costs;
}

std::string save_json(const SaveReport& report) {
  const ordered_json document = {{"event", "checkpoint"},
                                 {"saved_step", report.step},
                                 {"path", with_invalid_utf8_replaced(report.path.string())},
                                 {"stall_ms", report.stall_seconds * 1e3},
                                 {"written_seconds", report.written_seconds}};
  return document.dump();
}

std::string interference_line(const InterferenceReport& report) {
  char percent[32];
  std::snprintf(percent, sizeof percent, "%+.1f %%", report.percent);
  return "checkpoint of step " + std::to_string(report.step) + " | time of a step beside it " +
         percent + " (" + std::to_string(kInterferenceSteps) + " steps)";
}

std::string interference_json(const InterferenceReport& report) {
  const ordered_json document = {{"event", "interference"},
                                 {"saved_step", report.step},
                                 {"steps", kInterferenceSteps},
                                 {"percent", report.percent}};
  return document.dump();
}

}  // namespace tj::trainer
