// One save beside the training (docs/adr/0013): a thread copies the state into a buffer while
// the next step's forward and backward run, then writes at the lowest priority. Who waits for the
// save does the rest of the work itself, at its own priority.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "contract/result.h"
#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/save_report.h"
#include "trainer/checkpoint/save_work.h"
#include "trainer/checkpoint/staging_buffer.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

/// How long a save may go on once its run has ended without all ranks agreeing how.
inline constexpr std::chrono::seconds kUnagreedSaveMax{1};

class SaveJob {
 public:
  struct Inputs {
    SaveOrder order;
    std::span<const StateGroup> groups;  // these and `staging` outlive the job
    StagingBuffer& staging;
    /// Hears of each piece that the training waits for, and when it waits for other ranks.
    PhaseClock& clock;
    /// Called once, on some thread, by the first writer.
    std::function<void(const SaveReport&)> on_committed;
  };

  /// Begins. The state must not change before wait_until_copied() has returned. Where ranks hold
  /// parts of the state it is copied at once: then this is the writer's half of a collective.
  explicit SaveJob(Inputs inputs);
  /// Gives a save that goes on kUnagreedSaveMax, then drops it.
  ~SaveJob();
  SaveJob(const SaveJob&) = delete;
  SaveJob& operator=(const SaveJob&) = delete;

  void wait_until_copied();
  /// For what else the training waited because of this save.
  void add_stall(std::chrono::duration<double> stall);
  /// At once. True after an error; finish() has it.
  bool has_failed() const { return has_failed_; }
  bool is_over() const { return is_over_; }
  /// Until this rank's part is on the disk.
  Result<void> finish_own_part();
  /// Until nothing is left to do: for the first writer, until it is committed.
  Result<void> finish();
  /// Nothing more is done; what was written goes with the object.
  void abandon();

 private:
  void run(const std::stop_token& stop);
  void copied_with(const Result<void>& copied);
  Result<void> copy();
  std::optional<SaveWork::State> turn();
  void pause();
  void drive(const std::function<bool()>& is_enough);
  void fail(const Error& error);
  void report();

  Inputs inputs_;
  std::chrono::steady_clock::time_point begun_;
  std::atomic<bool> has_failed_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> is_own_done_ = false;

  std::mutex copy_mutex_;  // guards the four below
  std::condition_variable copied_;
  bool is_copied_ = false;
  std::optional<std::chrono::steady_clock::time_point> wait_begun_;
  std::chrono::duration<double> stall_{0};

  std::mutex work_mutex_;  // guards the two below
  std::unique_ptr<SaveWork> work_;
  std::optional<Error> error_;

  std::jthread thread_;  // stops and joins first
};

/// True when a tensor must be gathered from the ranks that have parts of it.
bool is_in_parts(std::span<const StateGroup> groups);
/// The half of a rank that does not write these files: sends its parts of what is gathered.
void send_parts(std::span<const StateGroup> groups, std::span<const PlannedFile> plan);

}  // namespace tj::trainer
