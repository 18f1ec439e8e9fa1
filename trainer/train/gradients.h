// What happens to finished gradients before the update: the scale of fp16 is taken off, and their
// global norm is kept below a bound.
#pragma once
#include <vector>

#include "trainer/train/zero/exact_squares.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// The L2 norm over all of `gradients` before the clipping; above `norm_max` all are multiplied by
/// norm_max / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_ does. norm_max 0: only the norm.
double clip_gradients(const std::vector<at::Tensor>& gradients, double norm_max);

/// What clip_gradients() multiplies by, at most 1; `norm_max` 0: 1.
float clip_factor(double norm, double norm_max);

/// The squares of the float32 `gradients`, to be added to those of other ranks.
ExactSquares exact_squares(const std::vector<at::Tensor>& gradients);

/// As clip_gradients(), with the bits of ranks that share the gradients out (trainer/train/zero).
double clip_gradients_exactly(const std::vector<at::Tensor>& gradients, double norm_max);

/// Divides `gradients` by `scale`. False when any value was not finite.
bool unscale_gradients(const std::vector<at::Tensor>& gradients, double scale);

/// Exponential moving average: each of `averages` moves by (1 - decay) towards its parameter.
void update_averages(const std::vector<at::Tensor>& averages,
                     const std::vector<at::Tensor>& parameters, double decay);

}  // namespace tj::trainer
