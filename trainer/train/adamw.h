// AdamW (Loshchilov and Hutter 2019, algorithm 2) with torch's fused kernel; its state lies open,
// for checkpoints.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/train/plan.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

class AdamW {
 public:
  AdamW(const std::vector<at::Tensor>& parameters, const AdamWOptions& options);
  ~AdamW();
  AdamW(const AdamW&) = delete;
  AdamW& operator=(const AdamW&) = delete;

  /// Weight decay touches tensors of two and more dimensions only.
  void step(double lr);

  /// First and second moments, in the order of the parameters.
  const std::vector<at::Tensor>& first_moments() const { return first_moments_; }
  const std::vector<at::Tensor>& second_moments() const { return second_moments_; }
  /// After the moments were loaded: how many steps they stand for.
  void set_step_count(std::int64_t steps);

 private:
  void step_some(double lr, bool matrices, double weight_decay);

  AdamWOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  std::vector<at::Tensor> step_counts_;  // one for each parameter, as the kernel wants them
};

}  // namespace tj::trainer
