// What a run says while it trains: lines for people on standard output, and the same as JSON lines
// in a file. One event is one line is one write, so that lines of several ranks never mix.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

struct StepReport {
  std::int64_t step = 0;  // finished steps, from 1
  std::int64_t steps = 0;
  double loss = 0;  // mean over all tokens of the step, of all ranks
  double lr = 0;
  double gradient_norm = 0;  // before clipping
  double seconds = 0;
  std::int64_t tokens = 0;  // of all ranks
};

/// step 12/300 | loss 3.1234 | lr 6.0e-04 | 12345 tok/s | 0.123 s
std::string step_line(const StepReport& report);
/// {"step":12,"loss":3.1234...,...}: the loss in full, so that two runs can be compared bit for
/// bit.
std::string step_json(const StepReport& report);

/// Writes one line to standard output (or error) at once.
void say(const std::string& line);
void say_error(const std::string& line);

/// Appends `line` to `file`. Fails when the disk says no.
Result<void> append_line(const std::filesystem::path& file, const std::string& line);

}  // namespace tj::trainer
