// A layer of Qwen2.5-VL's language tower. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include "trainer/workloads/qwen_vggt/qwen_config.h"
#include "trainer/workloads/qwen_vggt/turned.h"

namespace tj::trainer {

/// By its root mean square, in float32.
at::Tensor qwen_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// x float32 [B, T, width] -> the same; each token sees itself and those before it. tensors: the
/// twelve of a layer, in the order of qwen_tensors().
at::Tensor qwen_layer(const at::Tensor& x, at::TensorList tensors, const QwenText& text,
                      const Turns& turns);
/// The same of some tokens alone: `rows` of the B x T, [rows, width]. They see all as before.
at::Tensor qwen_layer_of(const at::Tensor& rows, const at::Tensor& x, at::TensorList tensors,
                         const QwenText& text, const Turns& turns);

/// Keys and values of all tokens so far, [B, heads of keys, tokens, head]; undefined: there are
/// none.
struct QwenSeen {
  at::Tensor k, v;
};
/// The same of tokens that come after those of `seen`, which grows by them: of the first tokens, or
/// of one.
at::Tensor qwen_layer_after(QwenSeen& seen, const at::Tensor& x, at::TensorList tensors,
                            const QwenText& text, const Turns& turns);

}  // namespace tj::trainer
