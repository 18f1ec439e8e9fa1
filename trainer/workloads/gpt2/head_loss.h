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
/// tokens, and makes the gradients of a block while its logits are at hand, where any are wanted.
at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored);

/// From one token's logits to the next's.
std::int64_t logit_stride(bool is_gpu, std::int64_t vocabulary);
/// Tokens of a block, of `tokens` in all.
std::int64_t logit_rows(bool is_gpu, std::int64_t tokens, std::int64_t stride);

}  // namespace tj::trainer
