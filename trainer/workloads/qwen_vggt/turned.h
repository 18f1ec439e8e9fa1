// Rotary positions (Su et al. 2021, arXiv 2104.09864) along several axes at once: each pair of
// values of a head turns by the position along one of them. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>

namespace tj::trainer {

/// Cosines and sines of T tokens, float32 [..., T, width of a head / 2]; heads broadcast.
struct Turns {
  at::Tensor cosine, sine;
};

/// Of Qwen's language tower: `positions` int64 [3, B, T] -> [B, 1, T, head / 2]. `sections`: how
/// many pairs turn by each axis, one behind the other.
Turns mrope_turns(const at::Tensor& positions, std::span<const std::int64_t, 3> sections,
                  double base);

/// Of pictures: `places` int64 [T, 2], rows and columns -> [T, head / 2]; the first half of the
/// pairs turns by rows, the other by columns.
Turns plane_turns(const at::Tensor& places, std::int64_t head_width, double base);

/// x [..., T, head], in its type: each value of the first half turns with its neighbour of the
/// second.
at::Tensor turned(const at::Tensor& x, const Turns& turns);

}  // namespace tj::trainer
