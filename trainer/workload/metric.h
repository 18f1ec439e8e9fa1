// A number that a run tells beside its loss, such as a PSNR.
#pragma once
#include <functional>
#include <span>
#include <string>

namespace tj::trainer {

struct Metric {
  std::string name;                // in files and on pages: a-z, 0-9 and _
  std::string label;               // in lines for people: "PSNR"
  std::string unit;                // behind the number: "dB"; may be empty
  int decimals = 4;                // in lines for people
  bool is_of_evaluations = false;  // steps don't tell it, and need not compute its sums
  bool is_of_training = false;  // evaluations don't tell it; passes of theirs give 0 for its sums
  /// Its value from the metric sums and the weight of all ranks and passes: never a mean over
  /// values of some of them.
  std::function<double(std::span<const double> sums, double weight)> finish;
};

}  // namespace tj::trainer
