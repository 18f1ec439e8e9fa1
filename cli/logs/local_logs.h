// The logs of a `tj run`: files beside its objects, without times. They are read side by side, a
// line of each rank in turn, so that equal lines meet and are folded; and followed while the run
// lives, from one attempt to the next.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "cli/local/run_folder.h"
#include "cli/logs/log_file.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/logs_options.h"
#include "operator/api/types.h"

namespace tj {

class LocalLogs {
 public:
  static constexpr std::chrono::milliseconds kLookAgain{100};

  LocalLogs(RunEntry run, const LogsOptions& options, LogPrinter& printer);

  /// Prints them, with options.follow until the run has ended. The error says what is not there.
  Result<void> run();

 private:
  using Key = std::pair<int, int>;  // attempt and rank
  Result<TrainingJob> read_job() const;
  void find_files(const TrainingJob& job, int attempt);
  /// A line of each rank in turn until there are no more; whether there were any.
  bool read_files(bool is_final);
  Result<void> follow(const TrainingJob& begun);
  std::filesystem::path path_of(int attempt, int rank) const;

  RunEntry run_;
  const LogsOptions& options_;
  LogPrinter& printer_;
  std::map<Key, LogFile> files_;
};

}  // namespace tj
