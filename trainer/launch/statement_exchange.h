// Launchers tell each other what they were given: that of rank 0 collects the statements at
// MASTER_PORT, and answers all of them at once. The port is free again before the processes start.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "contract/result.h"
#include "trainer/launch/statements.h"
#include "trainer/network/master_link.h"

namespace tj::trainer {

struct StatementRequest {
  Statement mine;
  Endpoint master;
  std::chrono::milliseconds timeout{300'000};
  // Without a new statement nobody else exists: longer than workers of one job usually start apart.
  std::chrono::milliseconds quiet{120'000};
  std::function<void(const std::string&)> say = {};  // what the statements show so far, for rank 0
  std::function<bool()> is_asked_to_stop = {};       // looked at while waiting
};

/// What makes two launchers share GPUs: the node (where the cluster names it), host and PID
/// namespace.
std::string machine_of_statements(const EnvLookup& lookup);

/// Fails with Code::invalid on a contradiction, with Code::timeout and those who came when not all
/// did, with Code::conflict when MASTER_PORT is taken, with Code::unavailable when asked to stop.
Result<WorldDecision> exchange_statements(const StatementRequest& request);

/// As they go over the wire, in one line; for tests.
std::string statement_line(const Statement& statement);
std::optional<Statement> statement_from_line(const std::string& line);

}  // namespace tj::trainer
