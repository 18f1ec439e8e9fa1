// What `tj logs` was asked for.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/logs/log_targets.h"

namespace tj {

struct LogsOptions {
  std::string job;
  LogSelection selection;
  std::optional<std::chrono::seconds> since;  // before now
  std::optional<std::int64_t> tail_lines;     // of each rank
  bool follow = false;
  bool previous = false;
  bool first_failure = false;
};

/// Of --first-failure without --tail.
inline constexpr std::int64_t kLastWordsLines = 50;

}  // namespace tj
