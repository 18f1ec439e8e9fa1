// What a run leaves for TensorBoard: scalars of each step, histograms, the settings as a text and
// as hyperparameters.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/report/event_file.h"
#include "trainer/report/event_messages.h"
#include "trainer/report/ledger.h"
#include "trainer/report/progress.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

class TensorBoard {
 public:
  static constexpr std::size_t kHistogramSteps = 100;  // the steps of one histogram

  /// A new file in `folder`. Fails when the disk says no.
  static Result<TensorBoard> create(const std::filesystem::path& folder, const std::string& host);

  /// `table`: all rows of the start-up table; `plan`: those that are hyperparameters. Steps from
  /// `first_step` on that an earlier attempt has written are forgotten by the readers.
  void begin(std::int64_t first_step, std::span<const Setting> table, std::span<const Setting> plan,
             const Unit& unit);
  void step(const StepReport& report, const Spending& spending);
  void evaluated(const EvalReport& report);
  void reduction_checked(const ReductionReport& report);
  /// `png`: the file of it.
  void picture(std::int64_t step, const Picture& picture, const std::string& png);
  void end(std::int64_t step, SessionStatus status);
  Result<void> flush() { return file_->flush(); }

 private:
  explicit TensorBoard(std::unique_ptr<EventFile> file) : file_(std::move(file)) {}
  void write_histograms(std::int64_t step);

  std::unique_ptr<EventFile> file_;
  std::vector<double> step_seconds_;  // since the last histogram
  std::vector<double> gradient_norms_;
};

}  // namespace tj::trainer
