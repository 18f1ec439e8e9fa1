// AdamW (Loshchilov and Hutter 2019, algorithm 2) with torch's fused kernel; its state lies open,
// for checkpoints.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/workload/parameter_groups.h"

namespace tj::trainer {

class AdamW {
 public:
  /// One rule for each parameter.
  AdamW(const std::vector<at::Tensor>& parameters, const std::vector<UpdateRule>& rules);
  ~AdamW();
  AdamW(const AdamW&) = delete;
  AdamW& operator=(const AdamW&) = delete;

  /// Needs a gradient in each parameter. Where `skip`, a float32 scalar on their device, is 1
  /// nothing changes but the count, which is set back by whoever reads it.
  void step(double lr, const at::Tensor& skip = {});

  /// First and second moments, in the order of the parameters.
  const std::vector<at::Tensor>& first_moments() const { return first_moments_; }
  const std::vector<at::Tensor>& second_moments() const { return second_moments_; }
  /// How many steps the moments stand for.
  std::int64_t step_count() const { return step_count_; }
  void set_step_count(std::int64_t steps) { step_count_ = steps; }

 private:
  struct Group {  // parameters of one rule, for one call of the kernel
    UpdateRule rule;
    std::vector<at::Tensor> parameters, first, second, counts;
  };

  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  std::vector<Group> groups_;
  at::Tensor count_;  // the steps, for the kernel
  std::int64_t step_count_ = 0;
};

}  // namespace tj::trainer
