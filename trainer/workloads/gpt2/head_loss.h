// The output layer and its loss as one: the logits of all tokens are never in memory at once.
#pragma once
#include <cstdint>

namespace at {
class Tensor;
}

namespace tj::trainer {

/// Sum of the cross entropies of softmax(x w^T) for `targets` other than `ignored`: a float32
/// scalar with a gradient for x [N, C] and w [V, C], of one type, float32 or bfloat16; targets [N]
/// int64. In bfloat16 only the products are: softmax and sums are float32. Works through blocks of
/// rows, and makes the gradients of a block while its logits are at hand, where any are wanted.
at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored);

}  // namespace tj::trainer
