// Which containers have a log that was asked for, read from the JSON of a job's pods. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "operator/api/rank_set.h"

namespace tj {

struct LogSelection {
  std::optional<RankSet> ranks;  // absent: all
  std::optional<int> attempt;    // absent: whichever has pods
  std::string container;         // empty: the main one
};

struct LogTarget {
  int rank = 0;
  int attempt = 0;
  std::string pod;
  std::string uid;
  std::string container;
  int restart_count = 0;     // of the container, in its pod
  bool has_started = false;  // there is a log
  bool has_ended = false;    // nothing is written to it any more
  /// Of one run of one container: another one has another log.
  std::string identity() const;
};

/// Those of workers, by attempt and rank.
std::vector<LogTarget> log_targets(const std::vector<nlohmann::json>& pods,
                                   const LogSelection& selection);

/// The container is one of the pods' (no pod: any is). The error lists those that are.
Result<void> check_container(const std::vector<nlohmann::json>& pods, const std::string& container);

/// "0,7-9" as it is typed, of ranks below the largest gang's. The error says what would be right.
Result<RankSet> parse_ranks(const std::string& text);

}  // namespace tj
