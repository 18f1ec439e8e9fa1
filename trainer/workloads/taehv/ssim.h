// Structural similarity (Wang, Bovik, Sheikh and Simoncelli 2004: Image quality assessment, from
// error visibility to structural similarity). Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

namespace tj::trainer {

/// Mean over all frames, channels and places, of values in [0, 1]: a scalar, 1 for equal ones. Both
/// are [..., channels, H, W], H and W at least 7. The window is the paper's, 11 x 11 of a Gaussian
/// of 1.5 pixels, or 7 x 7 in smaller frames; it stays within the frame.
at::Tensor ssim(const at::Tensor& one, const at::Tensor& other);

}  // namespace tj::trainer
