// One layer of one tower of a pi0: Gemma's (arXiv 2403.08295), whose attention spans both towers
// and is therefore done between its two halves. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/workloads/pi0/visibility.h"

namespace tj::trainer {

inline constexpr std::size_t kTensorsOfGemmaLayer = 9;
inline constexpr std::size_t kTensorsOfAdaptiveLayer = 11;

/// What a norm makes of x [B, T, width].
struct Normed {
  at::Tensor x;
  at::Tensor gate;  // [B, 1, width]: times what is added to the stream; undefined: 1
};

/// By its root mean square in float32 (Zhang and Sennrich 2019), with eps 1e-6. `tensors`: the
/// weight, of which the scale is 1 more; or weight and bias of what makes scale, shift and gate of
/// `condition` [B, width] (adaRMS).
Normed gemma_norm(const at::Tensor& x, at::TensorList tensors, const at::Tensor& condition);

struct HeadShape {
  std::int64_t heads = 0;  // of queries; of keys and values there is one
  std::int64_t width = 0;
};

class GemmaLayer {
 public:
  /// `tensors` in the order of pi0_tensors(); they outlive it. `condition`: undefined unless the
  /// layer is adaptive.
  GemmaLayer(at::TensorList tensors, const HeadShape& heads, const at::Tensor& condition);

  /// Before attention. Rotated already.
  struct Projected {
    at::Tensor q;     // [B, heads, T, width]; undefined where only keys are asked for
    at::Tensor k, v;  // [B, 1, T, width]
    at::Tensor gate;  // as in Normed
  };
  enum class Wants { all, keys_and_values };
  Projected projected(const at::Tensor& x, const Rotation& rotation, Wants wants) const;

  /// After it: x float32 [B, T, width] with the mixed values [B, heads, T, width] and the MLP.
  at::Tensor finished(const at::Tensor& x, const at::Tensor& mixed, const at::Tensor& gate) const;

 private:
  at::TensorList of_norm(std::size_t first) const;

  at::TensorList tensors_;
  HeadShape heads_;
  at::Tensor condition_;
  std::size_t norm_tensors_;
};

}  // namespace tj::trainer
