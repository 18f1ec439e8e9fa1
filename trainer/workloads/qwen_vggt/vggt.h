// VGGT's aggregator (arXiv 2503.11651), frozen: frames of one scene become tokens that know its
// geometry. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/workload/frozen_layers.h"
#include "trainer/workload/model_options.h"
#include "trainer/workloads/qwen_vggt/vggt_config.h"

namespace tj::trainer {

enum class FrameSight {
  all,      // every frame sees every other one, as VGGT was trained
  earlier,  // a frame sees itself and those before it, as frames come one by one
};

/// Scenes of as many frames of one size, which attend in one call.
struct VggtScenes {
  at::Tensor patches;     // [B, S, patches, width], as patches() makes them
  std::int64_t rows = 0;  // of patches in a frame
};

class Vggt {
 public:
  /// Of weights that are there, in the order of vggt_tensors(). With `ranks` its layers are shared
  /// out among them, and what computes is collective: also with nothing to look at. `ranks`
  /// outlives it; null: all is here.
  Vggt(std::vector<at::Tensor> weights, const VggtConfig& config, const ModelOptions& options,
       Communicator* ranks = nullptr);
  /// The same of weights that come one by one, each asked for once: what is shared out is then
  /// never here as a whole.
  using WeightAt = std::function<at::Tensor(std::size_t)>;
  Vggt(const WeightAt& weight, const VggtConfig& config, const ModelOptions& options,
       Communicator* ranks = nullptr);

  /// frames float32 [B, S, 3, height, width] in [0, 1], sides multiples of a patch's -> what the
  /// first `layers` layers make of them, float32 [B, S, special tokens + patches, 2 x width]: what
  /// the last of them made inside frames, and over all frames. Without gradients.
  at::Tensor tokens(const at::Tensor& frames, FrameSight sight, std::int64_t layers) const;

  /// Of the patches of each newest (last) frame, as the last layer but one leaves them: float32
  /// [B, patches by rows, 2 x width].
  at::Tensor newest(const at::Tensor& frames, FrameSight sight) const;

  // The same in two parts, for whoever sees a frame several times.

  /// What DINOv2 makes of frames, each by itself: of each of `images`, float32 [N, 3, height,
  /// width] in [0, 1], float32 [N, patches by rows, width].
  std::vector<at::Tensor> patches(std::span<const at::Tensor> images) const;
  /// newest() of each.
  std::vector<at::Tensor> newest_of(std::span<const VggtScenes> scenes, FrameSight sight) const;

  const VggtConfig& config() const { return config_; }
  at::Device device() const;
  bool is_shared_out() const { return layers_.is_shared_out(); }
  /// Of its weights, on this rank.
  std::int64_t held_bytes() const;

 private:
  struct Walked;  // scenes on their way through the layers

  using LayerPlace = std::pair<std::size_t, std::size_t>;
  std::vector<LayerPlace> layer_places() const;
  FrozenLayers take_layers(const WeightAt& weight, Communicator* ranks) const;
  std::vector<at::Tensor> take_others(const WeightAt& weight) const;
  at::TensorList part(std::size_t first, std::size_t count) const;
  at::Tensor positions(std::int64_t rows, std::int64_t columns) const;
  at::Tensor embedded(const at::Tensor& frames) const;
  at::Tensor without_special(const at::Tensor& x) const;
  Walked begun(const VggtScenes& scenes, FrameSight sight) const;
  std::vector<at::Tensor> tokens_of(std::span<const VggtScenes> scenes, FrameSight sight,
                                    std::int64_t layers) const;
  at::Tensor with_special(const at::Tensor& patches, std::int64_t frame_count) const;

  VggtConfig config_;
  ModelOptions options_;
  VggtTensors layout_;
  at::Tensor mean_, deviation_;      // of the colours
  std::vector<at::Tensor> weights_;  // but those of the layers
  FrozenLayers layers_;  // DINO's; then in turn those that attend inside frames, and over all
};

}  // namespace tj::trainer
