// What `trainer check` prints: a table for people, one JSON document for machines. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/check/links.h"

namespace tj::trainer {

/// All findings: those of the workers with their names, then those about the links.
std::vector<Finding> all_findings(const LinkFacts& facts);

/// Moves the finding of kNetworkCheck, of each worker, behind all others.
void put_network_last(std::vector<Finding>& findings);

/// {"result": "warn", "exit_code": 0, "findings": [...]}.
nlohmann::json report_json(const std::vector<Finding>& findings);
/// The same with what was measured, in bytes and seconds.
nlohmann::json report_json(const LinkFacts& facts);

/// Fails with Code::invalid on anything that report_json() does not write.
Result<std::vector<Finding>> findings_from_json(const nlohmann::json& document);

/// Findings that several places share are one row. What is to be done stands below a row; the last
/// line is the result.
std::string render_findings(const std::vector<Finding>& findings);

/// "warn: 2 things to look at; training can begin"
std::string result_line(const std::vector<Finding>& findings);

}  // namespace tj::trainer
