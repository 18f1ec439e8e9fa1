// What a check has found: one line of the table that `trainer check` prints. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// What is to be done about a finding, in ascending order.
enum class Severity {
  pass,
  warn,   // training works, but slower or with less warning than it could
  retry,  // not there yet: the same check may pass later
  fatal,  // a retry gives the same answer
};
std::string_view to_string(Severity severity);

struct Finding {
  Severity severity = Severity::pass;
  std::string check;   // "shared memory"
  std::string found;   // "64 MB in /dev/shm"
  std::string advice;  // what comes of it and what would be right; may be empty
  std::string where;   // "worker 1 (node-b)", "ranks 0 and 1"; empty: where the check ran
  bool operator==(const Finding&) const = default;
};

/// The check whose finding stands last in a table: what people look for first.
inline constexpr const char* kNetworkCheck = "network";

/// pass without findings.
Severity worst(std::span<const Finding> findings);

/// pass and warn: 0; retry: exit_code::kRendezvous; fatal: exit_code::kBadConfig.
int exit_code_for(Severity severity);
/// The severity of a program of ours that ended with `code`.
Severity severity_of_exit(int code);

/// As in the JSON document; `where` is left out where it is empty.
nlohmann::json to_json(const Finding& finding);
/// Fails with Code::invalid on anything that to_json() does not write.
Result<Finding> finding_from_json(const nlohmann::json& document);

/// "1.5 s", "2 min", "8.6 h".
std::string duration_text(double seconds);
/// "64 MB", "3.2 GB": powers of 1000, as disks and networks count.
std::string size_text(double bytes);

}  // namespace tj::trainer
