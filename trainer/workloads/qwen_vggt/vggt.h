// VGGT's aggregator (arXiv 2503.11651), frozen: frames of one scene become tokens that know its
// geometry. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/workload/model_options.h"
#include "trainer/workloads/qwen_vggt/vggt_config.h"

namespace tj::trainer {

enum class FrameSight {
  all,      // every frame sees every other one, as VGGT was trained
  earlier,  // a frame sees itself and those before it, as frames come one by one
};

class Vggt {
 public:
  /// Of weights that are there, in the order of vggt_tensors().
  Vggt(std::vector<at::Tensor> weights, const VggtConfig& config, const ModelOptions& options);

  /// frames float32 [B, S, 3, height, width] in [0, 1], sides multiples of a patch's -> what the
  /// first `layers` layers make of them, float32 [B, S, special tokens + patches, 2 x width]: what
  /// the last of them made inside frames, and over all frames. Without gradients.
  at::Tensor tokens(const at::Tensor& frames, FrameSight sight, std::int64_t layers) const;

  /// Of the patches of each newest (last) frame, as the last layer but one leaves them: float32
  /// [B, patches by rows, 2 x width].
  at::Tensor newest(const at::Tensor& frames, FrameSight sight) const;

  // The same in two parts, for whoever sees a frame several times.

  /// What DINOv2 makes of frames, each by itself: float32 [N, 3, height, width] in [0, 1] ->
  /// float32 [N, patches by rows, width].
  at::Tensor patches(const at::Tensor& frames) const;
  /// `patches` [B, S, patches, width] of frames that have so many rows of patches.
  at::Tensor newest_of(const at::Tensor& patches, std::int64_t rows, FrameSight sight) const;

  const VggtConfig& config() const { return config_; }

 private:
  at::TensorList part(std::size_t first, std::size_t count) const;
  at::Tensor positions(std::int64_t rows, std::int64_t columns) const;
  at::Tensor tokens_of(const at::Tensor& patches, std::int64_t rows, FrameSight sight,
                       std::int64_t layers) const;
  at::Tensor with_special(const at::Tensor& patches, std::int64_t frame_count) const;

  VggtConfig config_;
  ModelOptions options_;
  VggtTensors layout_;
  std::vector<at::Tensor> weights_;
};

}  // namespace tj::trainer
