// The saves of a run, as the loop sees them: when one begins, when the state may change again, and
// how all ranks hear of one that failed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/communicator.h"
#include "trainer/train/failure.h"

namespace tj::trainer {

struct StateTensors;

struct SavingOptions {
  std::filesystem::path out;
  std::int64_t keep = 0;  // newest checkpoints; 0: all
};

class Saving {
 public:
  /// `state` shares its memory with the run.
  Saving(Communicator& communicator, SavingOptions options, StateTensors state);
  ~Saving();
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

  /// Collective, after a finished step, with everything of `manifest` but its files. The state is
  /// read until wait_until_copied() returns.
  std::optional<Failure> begin(const Manifest& manifest);
  /// Before the state changes, so before each update of the parameters. Local.
  void wait_until_copied();
  /// True when a save has failed on this rank since the last agreement: the loop tells it to all
  /// ranks with its next reduction, and then all call finish().
  bool has_failed() const;
  /// Collective: waits for the save in flight; the failure of the lowest rank that has one.
  std::optional<Failure> finish();
  /// Of the last one that is complete, rank 0 only; empty: none yet.
  const std::string& last_path() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// SaveFailed, with the step and the cause.
Failure save_failure(std::int64_t step, const Error& error);

}  // namespace tj::trainer
