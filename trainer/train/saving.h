// The saves of a run, as the loop sees them: when one begins, when the state may change again, and
// how all ranks hear of one that failed.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/comm/communicator.h"
#include "trainer/report/reporter.h"
#include "trainer/values/failure.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

struct StateTensors;

struct SavingOptions {
  std::filesystem::path out;
  std::string config_json;                             // the text of config.json
  std::map<std::string, std::string> more_files = {};  // beside it: name -> content
  RetentionPolicy retention;
  std::optional<std::int64_t> begun_at;  // step of the checkpoint that the run went on from
  OutClaim claim;
  std::string run_id;         // the same on all ranks of this run
  bool is_shared = false;     // all ranks write, else rank 0 alone
  bool saves_midway = false;  // not only at the end, when there is nothing to disturb
  std::optional<std::chrono::milliseconds> others_max;  // for a rank that writes no more
  PhaseClock& clock;                                    // hears of what the training waits for
  Reporter& reporter;                                   // hears what a save cost
};

class Saving {
 public:
  /// `state` shares its memory with the run.
  Saving(Communicator& communicator, SavingOptions options, const StateTensors& state);
  ~Saving();
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

  /// On all ranks, after a finished step, with everything of `manifest` but its files. Begins a
  /// save and returns; the state is read until wait_until_copied() returns. While an earlier
  /// save is still being written it waits for it. Collective where parts of the state are gathered.
  /// `left_out`: groups that this save has no need of, the same on all ranks.
  void begin(const Manifest& manifest, const GroupStems& left_out = {});
  /// Before the state changes, so before each update of the parameters. Local.
  void wait_until_copied();
  /// True when a save has failed on this rank since the last agreement: the loop tells it to all
  /// ranks with its next reduction, and then all call finish().
  bool has_failed() const;
  /// Collective: waits for the save in flight; the failure of the lowest rank that has one.
  std::optional<Failure> finish();
  /// After each step: how long it took, for what a save costs the steps beside it.
  void step_took(double seconds);
  /// Of the last one that is complete, rank 0 only; empty: none yet.
  std::string last_path() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// SaveFailed, or Superseded where --out is another attempt's, with the step and the cause.
Failure save_failure(std::int64_t step, const Error& error);

}  // namespace tj::trainer
