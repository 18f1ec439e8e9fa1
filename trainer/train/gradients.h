// What happens to finished gradients before the update: the scale of fp16 is taken off, and their
// global norm is kept below a bound. What is found out stays on the device: nobody waits for it.
#pragma once
#include <vector>

#include "trainer/train/zero/exact_squares.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// The L2 norm over all of `gradients` before the clipping, a scalar; they are multiplied by
/// clip_factor(). norm_max 0: only the norm.
at::Tensor clip_gradients(const std::vector<at::Tensor>& gradients, double norm_max);

/// norm_max / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_ has it, and at most 1, which changes
/// no bit of what it multiplies. A float32 scalar.
at::Tensor clip_factor(const at::Tensor& norm, double norm_max);

/// The squares of the float32 `gradients`, to be added to those of other ranks.
ExactSquares exact_squares(const std::vector<at::Tensor>& gradients);

/// As clip_gradients(), with the bits of ranks that share the gradients out (trainer/train/zero).
at::Tensor clip_gradients_exactly(const std::vector<at::Tensor>& gradients, double norm_max);

/// Divides `gradients` by `scale`. Not 0, a float32 scalar, when any value was not finite.
at::Tensor unscale_gradients(const std::vector<at::Tensor>& gradients, double scale);

/// Exponential moving average: each of `averages` moves by (1 - decay) towards its parameter.
void update_averages(const std::vector<at::Tensor>& averages,
                     const std::vector<at::Tensor>& parameters, double decay);

}  // namespace tj::trainer
