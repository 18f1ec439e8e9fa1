// The output layer and its loss as one: the logits of all tokens are never in memory at once.
#pragma once
#include <cstdint>

namespace at {
class Tensor;
}

namespace tj::trainer {

class GpuKernels;

/// Sum of the cross entropies of softmax(x w^T) for `targets` other than `ignored`: a float32
/// scalar with a gradient for x [N, C] and w [V, C]; targets [N] int64. Products are computed in
/// x's type, float32 or bfloat16, softmax and sums in float32. Works through blocks of tokens, and
/// makes the gradients of a block while its logits are at hand, where any are wanted.
at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored);

/// Makes of logits [R, S] in bfloat16, of which `vocabulary` columns count, the gradients of minus
/// the log-probabilities of `targets` [R], which it gives back, float32 [R]. Both are 0 where a
/// target is `ignored`. S is a multiple of 8.
at::Tensor logit_gradients_by_kernel(GpuKernels& kernels, const at::Tensor& logits_RS,
                                     std::int64_t vocabulary, const at::Tensor& targets_R,
                                     std::int64_t ignored);

/// From one token's logits to the next's.
std::int64_t logit_stride(bool is_gpu, std::int64_t vocabulary);
/// Tokens of a block, of `tokens` in all.
std::int64_t logit_rows(bool is_gpu, std::int64_t tokens, std::int64_t stride);

}  // namespace tj::trainer
