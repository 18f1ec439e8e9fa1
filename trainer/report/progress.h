// How far a run is: as a line for people, as a bar on a terminal, as a JSON line in a file.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/report/picture.h"
#include "trainer/report/unit.h"

namespace tj::trainer {

/// What a workload tells beside the loss.
struct MetricValue {
  std::string name;   // in files and on pages
  std::string label;  // in lines for people
  std::string unit;   // behind the number; may be empty
  int decimals = 4;   // in lines for people
  double value = 0;   // over all ranks
};

struct StepReport {
  std::int64_t step = 0;  // finished steps, from 1
  std::int64_t steps = 0;
  double loss = 0;  // mean over all that counts in the step, of all ranks
  std::vector<MetricValue> metrics = {};
  double lr = 0;
  double gradient_norm = 0;  // before clipping
  double seconds = 0;
  std::optional<double> exposed_seconds = {};  // of waiting for other ranks, where there are any
  Unit unit = {};                              // what the speed counts
  std::int64_t units = 0;                      // of the step, of all ranks
  std::optional<double> mfu;                   // 0 to 1
  std::optional<double> eta_seconds;           // until the last step
};

double units_per_second(const StepReport& report);
/// In files and on pages: "tokens_per_second".
std::string speed_name(const Unit& unit);

/// In which words a step's line begins: our own, or those that platforms' log readers look for.
enum class LogStyle { trainer, platform };
std::optional<LogStyle> log_style_from(std::string_view name);

/// step 12/300 | loss 3.1234 | PSNR 18.5 dB | lr 6.0e-04 | 12345 tok/s | 0.123 s | mfu 41.2 % |
/// eta 0:35, without what is not known. Of a platform:
/// Step 12/300 | Loss: 3.1234 | PSNR: 18.5 dB | lr 6.0e-04 | ...
std::string step_line(const StepReport& report, LogStyle style = LogStyle::trainer);
/// {"step":12,"loss":3.1234...,...}: the loss in full, so that two runs can be compared bit for
/// bit.
std::string step_json(const StepReport& report);
/// [######----] 12/300 | loss 3.1234 | 12345 tok/s | eta 0:35, in less than `columns` columns.
std::string progress_bar(const StepReport& report, int columns, bool has_colour);
/// 35.2 -> "0:35", 3725 -> "1:02:05", 90061 -> "1d 1:01:01"
std::string time_left_text(double seconds);

/// The loss on data that is not trained on.
struct EvalReport {
  std::int64_t step = 0;  // finished steps
  double loss = 0;        // mean over all that counts, of all ranks
  std::vector<MetricValue> metrics = {};
  std::string counted = "samples";  // what the weight counts: "targets"
  std::int64_t weight = 0;
  double seconds = 0;
  std::optional<Picture> picture = {};  // of some of it, where there is something to see
};

/// eval after step 100 | loss 2.1234 | 32768 targets in 0.41 s
std::string eval_line(const EvalReport& report);
/// {"event":"eval","at_step":100,"eval_loss":2.1234,...}: the loss in full.
std::string eval_json(const EvalReport& report);

/// What a compressed reduction of gradients has given in a step, beside the exact one.
struct ReductionReport {
  std::int64_t step = 0;  // finished steps
  std::string codec;
  double cosine = 1;
  double cosine_min = 0;
  bool gave_up = false;  // it was below: from here on gradients are reduced exactly
};

/// reduce int8 | cosine to the exact gradient 0.9991 at step 100
std::string reduction_line(const ReductionReport& report);
/// reduce int8 is given up: the cosine 0.0123 is below 0.9 (--reduce-check-min); from step 101 on
/// gradients are reduced exactly
std::string given_up_line(const ReductionReport& report);
/// {"event":"reduce","at_step":100,"codec":"int8","cosine":0.9991...,"gave_up":false}
std::string reduction_json(const ReductionReport& report);

/// How fast steps follow each other, with all that is between them.
class Pace {
 public:
  static constexpr std::size_t kStepsMax = 32;  // the last ones count
  using Clock = std::chrono::steady_clock;

  void step_done(Clock::time_point now);
  /// Absent until two steps are done.
  std::optional<double> seconds_per_step() const;

 private:
  std::deque<Clock::time_point> done_;
};

}  // namespace tj::trainer
