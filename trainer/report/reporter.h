// Everything that a run tells others while it trains: lines and a bar for people, JSON lines,
// TensorBoard's events, /progress and /metrics, a log of each rank, the ledger. Rank 0 has all of
// it, the others their log. The loop says what happened, and nothing of it changes the training.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/progress.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/save_report.h"
#include "trainer/report/progress.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

/// What of a run's plan is told, and where to.
struct ReportOptions {
  std::string out;
  bool resume = false;
  std::int64_t steps = 0;
  std::int64_t log_every = 1;
  LogStyle log_style = LogStyle::trainer;
  std::string tensorboard;               // folder of event files; empty: none
  std::string log_dir;                   // folder of a log of each rank; empty: none
  std::optional<int> progress_port;      // 0: none; absent: the default of a job, none elsewhere
  double peak_tflops = 0;                // of each rank's device; 0: not known
  Unit unit;                             // what the speed counts
  double flops_per_unit = 0;             // for the share of that peak
  std::string flops_formula;             // of them, for people
  std::vector<Setting> hyperparameters;  // for TensorBoard
};

class Reporter {
 public:
  /// Before the ranks have met: from here on rank 0 answers at its port. `clock` outlives it.
  Reporter(ReportOptions options, const ProcessEnv& env, const PhaseClock& clock);
  /// Writes what is left, as of a run that has failed where nobody has said how it ended.
  ~Reporter();

  /// `--out` may be written to, and all ranks are there. Rank 0 prints the table.
  void begin(std::vector<Setting> table);
  /// Training goes on from `step`, whose checkpoint is at `path`; from scratch: 0 and empty.
  void training_begins(std::int64_t step, const std::string& path);
  /// A damaged checkpoint, newer than the one training goes on from, has another name now.
  void set_aside(const SetAside& aside);
  /// A step is done; `report` without unit, mfu and eta, which are found here. Fails when
  /// metrics.jsonl can't be written: the disk is full, and the next checkpoint would find it so.
  Result<void> step(StepReport report);
  /// The loss on other data is known.
  void evaluated(const EvalReport& report);
  /// A compressed reduction was compared with the exact one.
  void reduction_checked(const ReductionReport& report);
  /// The state of `step` is being saved.
  void save_begins(std::int64_t step);
  /// A checkpoint is complete. Any thread.
  void saved(const SaveReport& report);
  void interfered(const InterferenceReport& report);
  /// The newest complete one, of this run or what it went on from. Any thread.
  std::optional<SavedStep> last_checkpoint() const;
  /// Whom to ask for the ranks that do not move, on any thread, until end().
  void watch(std::function<std::vector<StalledRank>()> stalled);
  /// The end, once: how the run ended. Rank 0 prints where the time went.
  void end(const std::optional<Failure>& failure);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj::trainer
