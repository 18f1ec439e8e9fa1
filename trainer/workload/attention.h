// Attention by torch's scaled_dot_product_attention. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace tj::trainer {

/// For the whole process, before it computes: whether attention on a GPU adds its gradients in one
/// order, so that each run has the same bits. Else it is computed the fastest way. On at first.
void use_attention_in_order(bool is_in_order);

/// Of each token to itself and those before it. All are [samples, heads, tokens, width].
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
/// The same, where each pass has the same shape: what cuDNN prepares for a shape pays off then.
at::Tensor causal_attention_of_one_shape(const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v);

/// The same, with a backward that adds its gradients in one order. A GPU's own adds those of q as
/// its blocks come, so that no two runs would have the same bits.
at::Tensor causal_attention_in_order(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// Of each token to those that `visible`, bool [samples, 1, tokens of q, tokens of k], shows it:
/// one at least; undefined: to all. k and v may have one head for all of q's.
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& visible = {});
/// The same, as causal_attention_in_order().
at::Tensor masked_attention_in_order(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& visible = {});

/// Which of torch's backends computes it there, in words: for heads of 64, of tensors of `type`,
/// causal. Two, where causal_attention_of_one_shape() takes another one.
std::string attention_backend(at::Device device, at::ScalarType type);

}  // namespace tj::trainer
