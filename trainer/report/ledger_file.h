// Keeps a run's ledger across attempts: reads what the last one left, and writes anew as time
// passes. A kill loses what came after the last write; the next attempt counts that as lost.
#pragma once
#include <filesystem>
#include <mutex>

#include "trainer/report/ledger.h"

namespace tj::trainer {

class LedgerFile {
 public:
  /// `before_seconds` of this process had passed before `clock`, which outlives this, began.
  LedgerFile(std::filesystem::path path, const PhaseClock& clock, double before_seconds);

  /// An attempt begins, from a checkpoint or (`resumes` false) a run of its own.
  void begin(int attempt, bool resumes, std::int64_t step);
  /// From here on `step` is a place to go on from: what follows is lost if that happens.
  void mark(std::int64_t step);
  void finish();  // all steps are done
  /// Of the run up to now.
  Spending spending() const;
  /// Writes the file; a disk that says no is asked again the next time.
  void write();

 private:
  Spending now() const;

  const std::filesystem::path path_;
  const PhaseClock& clock_;
  const double before_seconds_;
  mutable std::mutex mutex_;  // guards the rest
  LedgerRecord record_;       // without what this process has spent, but for the marks
  bool has_begun_ = false;    // before, the file is not ours to write
};

/// Seconds since the calling process was started, by the kernel's clock; 0 where it can't be read.
double process_age_seconds();
double unix_seconds();

}  // namespace tj::trainer
