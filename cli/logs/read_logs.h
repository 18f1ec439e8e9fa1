// Logs as they are now, in the order of their times. Memory has a bound however long they are: a
// log whose lines wait for those of another is closed, and read on from there later.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/logs/line_merger.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/log_targets.h"
#include "cli/logs/logs_options.h"
#include "cli/logs/pod_log.h"

namespace tj {

struct ReadBounds {
  int open_max = 64;  // streams at a time
  std::size_t waiting_bytes_max = 32 * 1024 * 1024;
  std::size_t waiting_bytes_min = 64 * 1024;  // of one log, however many there are
};

class ReadLogs {
 public:
  ReadLogs(Session& session, const LogsOptions& options, LogPrinter& printer,
           ReadBounds bounds = {});

  /// Reads and prints all of them; false: of some not all could be read, which has been said.
  bool run(const std::vector<LogTarget>& targets);

 private:
  struct Log {
    LogTarget target;
    std::unique_ptr<PodLog> log;
  };
  void add(const LogTarget& target);
  void take(std::size_t source, LogTime time, std::string_view text);
  void ended(std::size_t source, const Result<void>& end);
  /// Opens those whose turn it is.
  void open_more();

  ReadBounds bounds_;
  Session& session_;
  const LogsOptions& options_;
  LogPrinter& printer_;
  Alarm alarm_;
  LineMerger merger_;
  std::vector<Log> logs_;
  std::size_t share_bytes_ = 0;  // of one log
  std::size_t ended_count_ = 0;
  bool is_all_ = true;
};

}  // namespace tj
