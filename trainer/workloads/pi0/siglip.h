// SigLIP's tower (Zhai et al. 2023, arXiv 2303.15343), a vision transformer without a class token:
// of each image as many tokens as it has patches. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

// N images, T patches of each, in rows from the top; all tokens float32.

/// images [N, 3, side, side], tensors: weight, bias, positions -> [N, T, width].
at::Tensor siglip_patches(const at::Tensor& images, at::TensorList tensors);
/// tensors: the sixteen of a layer, in the order of pi0_tensors().
at::Tensor siglip_layer(const at::Tensor& x_NTC, at::TensorList tensors, std::int64_t heads);
/// The last norm, and the projection to the width of the prefix. tensors: weight and bias of both.
at::Tensor siglip_projected(const at::Tensor& x_NTC, at::TensorList tensors);

}  // namespace tj::trainer
