// What a checkpoint holds of a compressed reduction.
#pragma once
#include <cstdint>

namespace tj::trainer {

struct ReductionMark {
  std::int64_t ranks = 0;         // whose errors are there; 0: none
  std::int64_t factors_rank = 0;  // of PowerSGD's factors; 0: none are there
  bool is_exact = false;          // the run had given its codec up
  double scale = 1;               // of the gradients that the errors are of: the loss scale of fp16
  bool operator==(const ReductionMark&) const = default;
};

}  // namespace tj::trainer
