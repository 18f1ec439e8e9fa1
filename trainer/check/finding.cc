#include "trainer/check/finding.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "contract/outcome.h"
#include "contract/utf8.h"

namespace tj::trainer {
namespace {

constexpr std::array kSeverities = {Severity::pass, Severity::warn, Severity::retry,
                                    Severity::fatal};

std::optional<Severity> severity_named(std::string_view word) {
  for (const Severity severity : kSeverities) {
    if (word == to_string(severity)) return severity;
  }
  return std::nullopt;
}

/// Two significant digits below ten, whole numbers above.
std::string number_and_unit(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.2g %s" : "%.0f %s", value, unit);
  return text;
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::pass: return "pass";
    case Severity::warn: return "warn";
    case Severity::retry: return "retry";
    case Severity::fatal: return "fatal";
  }
  return "fatal";
}

Severity worst(std::span<const Finding> findings) {
  Severity all = Severity::pass;
  for (const Finding& finding : findings) all = std::max(all, finding.severity);
  return all;
}

int exit_code_for(Severity severity) {
  switch (severity) {
    case Severity::pass:
    case Severity::warn: return exit_code::kDone;
    case Severity::retry: return exit_code::kRendezvous;
    case Severity::fatal: return exit_code::kBadConfig;
  }
  return exit_code::kBadConfig;
}

Severity severity_of_exit(int code) {
  if (code == exit_code::kDone) return Severity::pass;
  return is_permanent(code) ? Severity::fatal : Severity::retry;
}

nlohmann::json to_json(const Finding& finding) {
  nlohmann::json document{{"severity", to_string(finding.severity)},
                          {"check", finding.check},
                          {"found", with_invalid_utf8_replaced(finding.found)},
                          {"advice", with_invalid_utf8_replaced(finding.advice)}};
  if (!finding.where.empty()) document["where"] = with_invalid_utf8_replaced(finding.where);
  return document;
}

Result<Finding> finding_from_json(const nlohmann::json& document) {
  const auto text = [&](const char* name) {
    const auto value = document.is_object() ? document.find(name) : document.end();
    if (!document.is_object() || value == document.end() || !value->is_string())
      return std::string();
    return value->get<std::string>();
  };
  const auto severity = severity_named(text("severity"));
  if (!severity || text("check").empty()) {
    return Error{.code = Code::invalid,
                 .message = "has no severity (pass, warn, retry, fatal) or no check",
                 .subject = "finding"};
  }
  return Finding{.severity = *severity,
                 .check = text("check"),
                 .found = text("found"),
                 .advice = text("advice"),
                 .where = text("where")};
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 1e-3) return number_and_unit(seconds * 1e6, "us");
  if (seconds < 1) return number_and_unit(seconds * 1e3, "ms");
  if (seconds < 2 * kMinute - 1) return number_and_unit(seconds, "s");
  if (seconds < 2 * kHour) return number_and_unit(seconds / kMinute, "min");
  return number_and_unit(seconds / kHour, "h");
}

std::string size_text(double bytes) {
  if (bytes < 1e3) return number_and_unit(bytes, "bytes");
  if (bytes < 1e6) return number_and_unit(bytes / 1e3, "kB");
  if (bytes < 1e9) return number_and_unit(bytes / 1e6, "MB");
  if (bytes < 1e12) return number_and_unit(bytes / 1e9, "GB");
  return number_and_unit(bytes / 1e12, "TB");
}

}  // namespace tj::trainer
