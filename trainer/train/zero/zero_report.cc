#include "trainer/train/zero/zero_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {

double bytes_per_parameter(const ZeroReport& report) {
  return static_cast<double>(report.state_bytes) / static_cast<double>(report.parameters);
}

}  // namespace

double volume_in_parameters(const ZeroReport& report) {
  if (report.ranks == 1) return 0;
  const double sent =
      static_cast<double>(report.elements_sent) / static_cast<double>(report.parameters);
  return report.group_size ? sent : sent * report.ranks / (report.ranks - 1);
}

std::string zero_line(const ZeroReport& report) {
  const std::string groups =
      report.group_size ? " in groups of " + std::to_string(*report.group_size) : "";
  char line[200];
  std::snprintf(line, sizeof line,
                "zero %d on %d ranks%s | state %.2f bytes per parameter | %.2f x the parameters "
                "%s in a step",
                report.stage, report.ranks, groups.c_str(), bytes_per_parameter(report),
                volume_in_parameters(report), report.group_size ? "sent by each" : "moved");
  return line;
}

std::string zero_json(const ZeroReport& report) {
  const nlohmann::ordered_json document = {{"event", "zero"},
                                           {"stage", report.stage},
                                           {"ranks", report.ranks},
                                           {"group_size", report.group_size.value_or(report.ranks)},
                                           {"parameters", report.parameters},
                                           {"state_bytes", report.state_bytes},
                                           {"bytes_per_parameter", bytes_per_parameter(report)},
                                           {"elements_sent_in_a_step", report.elements_sent},
                                           {"bytes_sent_in_a_step", report.bytes_sent},
                                           {"volume_in_parameters", volume_in_parameters(report)}};
  return document.dump();
}

}  // namespace tj::trainer
