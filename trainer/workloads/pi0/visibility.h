// Which token of a pi0 sees which, and where each stands: the rules of attention between its
// blocks, and the rotary positions (Su et al. 2021, arXiv 2104.09864). Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

/// Of T tokens of B samples.
struct Visibility {
  at::Tensor visible;    // bool [B, 1, T, T]: the first T sees, the second is seen
  at::Tensor positions;  // int64 [B, T]
};

/// A block of tokens sees itself and the blocks before it, of all of them what is valid; what is
/// not sees itself alone, and nobody sees it. `valid`: bool [B, T]; `opens`: int64 [T], 1 where a
/// token begins a block. Positions count the valid ones (openpi's make_att_2d_masks).
Visibility visibility(const at::Tensor& valid, const at::Tensor& opens);

/// Of images, prompt, state and actions: the images and the prompt are the first block, then the
/// state (pi0 only), then the actions.
Visibility pi0_visibility(const Pi0Config& config, const at::Tensor& image_mask,
                          const at::Tensor& token_mask);

/// Cosines and sines of the rotations of T tokens, float32 [B, 1, T, width of a head / 2].
struct Rotation {
  at::Tensor cosine, sine;

  /// Of the tokens from `first` on.
  Rotation narrowed(std::int64_t first, std::int64_t count) const {
    return {cosine.narrow(2, first, count), sine.narrow(2, first, count)};
  }
};

Rotation rotation_of(const at::Tensor& positions, std::int64_t head_width);

/// x [B, heads, T, width], in its type: each value of the first half turns with its neighbour of
/// the second.
at::Tensor rotated(const at::Tensor& x, const Rotation& rotation);

}  // namespace tj::trainer
