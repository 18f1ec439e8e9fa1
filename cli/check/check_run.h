// A check in a cluster: its job is created, followed, read and, however that ends, deleted.
#pragma once
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/check/check_report.h"
#include "cli/cluster/session.h"
#include "cli/submit/following.h"

namespace tj::check {

struct CheckCalls {
  Session& session;
  const submit::Interrupts& interrupts;
  /// The log of the check's container in that pod.
  std::function<Result<std::vector<std::string>>(const ObjectKey& pod)> read_log;
  std::function<void(const std::string& line)> print;  // what is going on
  std::chrono::milliseconds period{1'000};             // between two looks
  /// The operator ends the check by its own deadline before that, if there is one.
  std::chrono::seconds limit{360};
};

/// By rank; nothing after a signal. The job is gone when it returns, or it was printed why not.
Result<std::vector<RankResult>> run_check(const CheckCalls& calls, const nlohmann::json& check_job);

/// The pods of a job, trimmed.
Result<std::vector<Pod>> pods_of(Session& session, const ObjectKey& job);

/// Reads a log from the server, to its end or to a bound.
Result<std::vector<std::string>> read_log(Session& session, const ObjectKey& pod);

}  // namespace tj::check
