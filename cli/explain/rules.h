// All causes that `tj explain` knows, and the chain of those that hold. Pure. A family of rules is
// a file; docs/logs-and-explain.md has a row for each, which a test compares.
#pragma once
#include <string>
#include <vector>

#include "cli/explain/evidence.h"
#include "cli/explain/finding.h"

namespace tj {

using Rules = std::vector<Rule>;

Rules control_rules();    // what keeps pods from being made
Rules placement_rules();  // what keeps them from a node
Rules start_rules();      // what keeps their containers from running
Rules loss_rules();       // workers that were taken away, and nodes
Rules exit_rules();       // workers that ended by themselves
Rules run_rules();        // how the run goes, and what the operator made of a failure

const Rules& all_rules();

/// The causes that hold, in causal order.
std::vector<Finding> explain(const Evidence& evidence);

/// What `tj explain` prints: the job's line, then a paragraph for each cause.
std::string to_text(const Evidence& evidence, const std::vector<Finding>& findings);
nlohmann::json to_json(const Evidence& evidence, const std::vector<Finding>& findings);

/// "3 min ago (2026-11-21T00:03:00Z)".
std::string age_text(TimePoint time, TimePoint now);

}  // namespace tj
